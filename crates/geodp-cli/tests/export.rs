//! Models that leave: every preset as ONNX. With `GEODP_ONNX_PYTHON=python3` (one that has onnxruntime)
//! the graphs are run and must answer as `geodp predict` does, to 1e-5.

use crate::common;

use common::{Bench, complaint};
use std::path::Path;
use std::process::Command;

/// Bytes of an NPY file of images that no model has seen, as `shape` says, the number first.
fn images(shape: &[usize]) -> Vec<u8> {
    let sides: Vec<String> = shape.iter().map(usize::to_string).collect();
    let sides = sides.join(", ");
    let mut header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({sides},), }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    // Soft blobs with some noise: flat parts, edges and texture.
    let value = |at: usize| 127.0 + 100.0 * (at as f64 * 0.013).sin() + (at * 7919 % 29) as f64;
    bytes.extend((0..shape.iter().product()).map(|at| value(at) as u8));
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
    compare_to(bench, run, input, "1e-5");
}

fn compare_to(bench: &Bench, run: &str, input: &str, limit: &str) {
    let Some(python) = std::env::var_os("GEODP_ONNX_PYTHON") else { return };
    let predictions = format!("{run}.csv");
    let output = bench.geodp(&["predict", run, input, "--out", &predictions]);
    assert!(output.status.success(), "{}", complaint(&output));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/onnx_check.py");
    let mut check = Command::new(python);
    check.current_dir(bench.folder.path()).arg(script);
    let output = check.args([&format!("{run}.onnx"), input, &predictions, limit]).output().unwrap();
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
    std::fs::write(bench.path("new.npy"), images(&[9, 28, 28])).unwrap();
    std::fs::write(
        bench.path("own.toml"),
        "input = [1, 28, 28]\nloss = \"softmax_cross_entropy\"\n\
         [[layers]]\ntype = \"conv2d\"\noutputs = 4\nkernel = 3\nstride = 2\n\
         [[layers]]\ntype = \"group_norm\"\ngroups = 2\n[[layers]]\ntype = \"tanh\"\n\
         [[layers]]\ntype = \"avg_pool\"\nkernel = 2\n[[layers]]\ntype = \"flatten\"\n\
         [[layers]]\ntype = \"linear\"\noutputs = 10\nbias = false\n",
    )
    .unwrap();
    for model in ["cnn", "tanh-cnn", "resnet", "own.toml", "logistic", "mlp"] {
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

/// Scattering features and views of grey and coloured images are computed inside the graph.
#[test]
fn scattering_features_and_views() {
    let bench = Bench::new();
    let mut labels = b"\0\0\x08\x01\0\0\0\x1e".to_vec();
    labels.extend((0..30).map(|at| at % 3));
    std::fs::write(bench.path("labels.idx"), labels).unwrap();
    let views = "[views]\nflip = true\nshift = 1\n";
    // Half precision rounds on both sides, and what lies near the middle goes either way.
    for (name, shape, storage, views, limit) in [
        ("grey", &[30, 28, 28][..], "single", "", "1e-5"),
        ("half", &[30, 28, 28], "half", "", "5e-4"),
        ("colour", &[30, 3, 32, 32], "single", views, "1e-5"),
    ] {
        let file = format!("{name}.npy");
        std::fs::write(bench.path(&file), images(shape)).unwrap();
        let config = format!(
            "[data]\nsource = \"npy\"\ntrain_inputs = \"{file}\"\ntrain_labels = \"labels.idx\"\n\
             classes = 3\nholdout = 4\n[model]\nname = \"logistic\"\n\
             [features]\nkind = \"scattering\"\nstorage = \"{storage}\"\n{views}\
             [privacy]\nnoise_multiplier = 1.0\n[train]\nbatch = 20\nsteps = 5\nseed = 1\n"
        );
        std::fs::write(bench.path("run.toml"), config).unwrap();
        let output = bench.geodp(&["train", "--config", "run.toml", "--out", name]);
        assert!(output.status.success(), "{}", complaint(&output));
        let graph = export(&bench, name, &[]);
        assert!(has(&graph, "scattering.coarse7") && graph.len() < 1_000_000, "{}", graph.len());
        compare_to(&bench, name, &file, limit);
        // Features that are given are rounded as those that are computed.
        let after = export(&bench, name, &["--after-features"]);
        assert!(!has(&after, "scattering."));
        assert_eq!(has(&after, "Cast_"), storage == "half");
    }
}

/// A number that is learnt leaves in its own unit.
#[test]
fn numbers() {
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
}
