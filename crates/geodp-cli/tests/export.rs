//! Models that leave: every preset as ONNX. With `GEODP_ONNX_PYTHON=python3` (one that has onnxruntime)
//! the graphs are run and must answer as `geodp predict` does, to 1e-5.

mod common;

use common::{Bench, complaint};
use std::path::Path;
use std::process::Command;

/// Bytes of an NPY file of `count` images that no model has seen.
fn images(count: usize) -> Vec<u8> {
    let mut header =
        format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({count}, 28, 28), }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend((0..count * 784).map(|at| (at * 7919 % 256) as u8));
    bytes
}

fn export(bench: &Bench, run: &str, more: &[&str]) -> Vec<u8> {
    let file = format!("{run}.onnx");
    let args: Vec<&str> = ["export", run, "--onnx", &file].iter().chain(more).copied().collect();
    let output = bench.geodp(&args);
    assert!(output.status.success(), "{}", complaint(&output));
    std::fs::read(bench.path(&file)).unwrap()
}

/// Runs the graph, where there is a Python to do it.
fn compare(bench: &Bench, run: &str, input: &str) {
    let Some(python) = std::env::var_os("GEODP_ONNX_PYTHON") else { return };
    let predictions = format!("{run}.csv");
    let output = bench.geodp(&["predict", run, input, "--out", &predictions]);
    assert!(output.status.success(), "{}", complaint(&output));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/onnx_check.py");
    let mut check = Command::new(python);
    check.current_dir(bench.folder.path()).arg(script);
    let output = check.args([&format!("{run}.onnx"), input, &predictions]).output().unwrap();
    assert!(output.status.success(), "{run}: {}", complaint(&output));
    println!("{run}: {}", String::from_utf8_lossy(&output.stdout).trim());
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn tables_with_their_scaling_and_classes_inside() {
    let bench = Bench::new();
    std::fs::write(
        bench.path("data.csv"),
        std::fs::read_to_string(bench.path("data.csv")).unwrap().replace("0.5,", ","),
    )
    .unwrap();
    let schema = std::fs::read_to_string(bench.path("schema.toml")).unwrap();
    let schema = schema.replace("column = \"b\"\n", "column = \"b\"\nmissing = 0.25\n");
    std::fs::write(bench.path("schema.toml"), schema).unwrap();
    for model in ["logistic", "mlp"] {
        let args = bench.train(model, &["--model", model, "--steps", "30", "--seed", "1"]);
        let output = bench.geodp(&args);
        assert!(output.status.success(), "{}", complaint(&output));
        let graph = export(&bench, model, &[]);
        for name in ["color", "LabelEncoder", "yes", "geodp.schema", "certified ε"] {
            assert!(has(&graph, name), "{model}: “{name}” is not in the graph");
        }
        compare(&bench, model, "data.csv");
    }
}

#[test]
fn networks_of_images_and_features() {
    let bench = Bench::new();
    std::fs::write(bench.path("new.npy"), images(9)).unwrap();
    std::fs::write(
        bench.path("own.toml"),
        "input = [1, 28, 28]\nloss = \"softmax_cross_entropy\"\n\
         [[layers]]\ntype = \"conv2d\"\noutputs = 4\nkernel = 3\nstride = 2\n\
         [[layers]]\ntype = \"group_norm\"\ngroups = 2\n[[layers]]\ntype = \"tanh\"\n\
         [[layers]]\ntype = \"avg_pool\"\nkernel = 2\n[[layers]]\ntype = \"flatten\"\n\
         [[layers]]\ntype = \"linear\"\noutputs = 10\nbias = false\n",
    )
    .unwrap();
    for model in ["cnn", "resnet", "own.toml", "logistic"] {
        let run = model.trim_end_matches(".toml");
        let args =
            ["train", "--data", "mnist", "--holdout", "100", "--model", model, "--steps", "2"];
        let more = ["--batch", "64", "--noise-multiplier", "1", "--seed", "1", "--out", run];
        let args: Vec<&str> = args.into_iter().chain(more).collect();
        let output = bench.geodp(&args);
        assert!(output.status.success(), "{}", complaint(&output));
        assert!(has(&export(&bench, run, &[]), "probabilities"));
        compare(&bench, run, "new.npy");
    }
}

/// A number that is learnt leaves in its own unit; scattering does not leave, and says why.
#[test]
fn numbers_and_features() {
    let bench = Bench::new();
    let schema = std::fs::read_to_string(bench.path("schema.toml")).unwrap();
    let schema = schema.replace(
        "column = \"label\"\nclasses = [\"no\", \"yes\"]",
        "column = \"b\"\nrange = [-1, 3]",
    );
    let schema = schema.replace("[[feature]]\ncolumn = \"b\"\nrange = [0, 1]\n", "");
    std::fs::write(bench.path("schema.toml"), schema).unwrap();
    let output = bench.geodp(&bench.train("number", &["--model", "mlp", "--steps", "20"]));
    assert!(output.status.success(), "{}", complaint(&output));
    assert!(has(&export(&bench, "number", &[]), "predicted_b"));
    compare(&bench, "number", "data.csv");

    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../geodp-data/tests/golden");
    for (class, file) in [("coloured", "colour.jpg"), ("grey", "grey.jpg")] {
        let folder = bench.path("images").join(class);
        std::fs::create_dir_all(&folder).unwrap();
        (0..10).for_each(|at| {
            std::fs::copy(golden.join(file), folder.join(format!("{at}.jpg"))).unwrap();
        });
    }
    let args = ["train", "--data", "images", "--out", "scattering", "--batch", "9", "--steps", "2"];
    let output = bench.geodp(&args);
    assert!(output.status.success(), "{}", complaint(&output));
    let output = bench.geodp(&["export", "scattering", "--onnx", "x.onnx"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains("--after-features"), "{}", complaint(&output));
    assert!(has(&export(&bench, "scattering", &["--after-features"]), "probabilities"));
}
