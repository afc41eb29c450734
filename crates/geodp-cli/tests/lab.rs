//! `geodp lab` as a user calls it.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn lab(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_geodp"));
    // No CIFAR-10 there: the figures fall back on the bundled MNIST.
    command.current_dir(folder).env("GEODP_DATA", folder).arg("lab").args(args);
    command.output().unwrap()
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_list_names_every_figure_and_table() {
    let folder = tempfile::tempdir().unwrap();
    let output = lab(folder.path(), &["list", "--json"]);
    let list: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<&str> = list.iter().map(|e| e["name"].as_str().unwrap()).collect();
    for name in ["fig1", "fig3", "fig4", "fig5", "fig6", "table2", "table3", "privacy", "claims"] {
        assert!(names.contains(&name), "{name} is missing");
    }
    assert!(list.iter().all(|e| e["expected_seconds"].as_f64().unwrap() > 0.0));
}

#[test]
fn a_figure_is_run_once_and_resumed_after() {
    let folder = tempfile::tempdir().unwrap();
    let run = ["run", "fig1", "--quick", "--out", "out"];
    let output = lab(folder.path(), &[&run[..], &["--json"]].concat());
    assert!(output.status.success(), "{}", complaint(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["report"], "out/report.html");
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("MNIST stands in for it"));
    assert!(folder.path().join("out/fig1a.svg").exists());

    let again = lab(folder.path(), &run);
    assert_eq!(again.status.code(), Some(2));
    assert!(complaint(&again).contains("--resume"));
    let other = lab(folder.path(), &["run", "fig1", "--out", "out", "--resume"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(complaint(&other).contains("size quick"), "{}", complaint(&other));

    std::fs::remove_file(folder.path().join("out/report.html")).unwrap();
    let resumed = lab(folder.path(), &[&run[..], &["--resume"]].concat());
    assert!(resumed.status.success() && folder.path().join("out/report.html").exists());
    let drawn = lab(folder.path(), &["draw", "--out", "out"]);
    assert!(drawn.status.success());
}

#[test]
fn mistakes_are_the_users() {
    let folder = tempfile::tempdir().unwrap();
    let unknown = lab(folder.path(), &["run", "fig7"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(complaint(&unknown).contains("fig1, fig3"), "{}", complaint(&unknown));
    // CIFAR-10 cannot be bundled; the message says where to get it.
    let missing = lab(folder.path(), &["run", "table3", "--quick", "--out", "out"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(complaint(&missing).contains("CIFAR-10"), "{}", complaint(&missing));
    let nothing = lab(folder.path(), &["draw", "--out", "nowhere"]);
    assert_eq!(nothing.status.code(), Some(2), "{}", complaint(&nothing));
}
