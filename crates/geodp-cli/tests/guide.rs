//! docs/guide.md, word for word: every block of shell in an empty folder, with a made table of the same
//! columns in place of the survey, whose licence does not allow a copy here.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// A table like the survey's, in which unhappy marriages have more affairs.
fn survey() -> String {
    let mut csv =
        "rate_marriage,age,yrs_married,children,religious,educ,occupation,occupation_husb,affair\n"
            .to_owned();
    let mut state = 9_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    for _ in 0..4000 {
        let rate = 1 + random(5);
        let affair = if random(10) < 2 * (6 - rate) { "yes" } else { "no" };
        let (age, years, children) = (18 + random(25), random(23), random(6));
        let (religious, educ) = (1 + random(4), 9 + random(12));
        let (own, husband) = (1 + random(6), 1 + random(6));
        writeln!(
            csv,
            "{rate}.0,{age}.0,{years}.5,{children}.0,{religious}.0,{educ}.0,{own}.0,{husband}.0,{affair}"
        )
        .unwrap();
    }
    csv
}

#[test]
fn the_guide_works_word_for_word() {
    let empty = tempfile::tempdir().unwrap();
    let folder = empty.path();
    std::fs::write(folder.join("affairs.csv"), survey()).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = std::fs::read_to_string(root.join("docs/guide.md")).unwrap();
    let binaries = Path::new(env!("CARGO_BIN_EXE_geodp")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    let mut said = String::new();
    let mut blocks = 0;
    for block in guide.split("```sh\n").skip(1) {
        let script = block.split("```").next().unwrap();
        let mut shell = Command::new("sh");
        let shell = shell.current_dir(folder).env("PATH", &path).args(["-e", "-c", script]);
        let output = shell.output().unwrap();
        said += &String::from_utf8_lossy(&output.stdout);
        said += &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}\n{said}");
        blocks += 1;
    }
    assert_eq!(blocks, 5);
    assert!(said.contains("certified ε = 2.99") && said.contains("AUC"), "{said}");
    assert!(!said.contains("warning"), "{said}");
    let predictions = std::fs::read_to_string(folder.join("predictions.csv")).unwrap();
    assert_eq!(predictions.lines().count(), 4001);
    assert!(folder.join("affairs.onnx").exists());
    for file in ["model.safetensors", "MODEL_CARD.md", "statement.json", "schema.toml"] {
        assert!(folder.join("runs/affairs").join(file).exists(), "{file}");
    }
}
