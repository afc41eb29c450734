//! What the command line offers: names that complete, defaults for what a config leaves out, data by
//! flags, and word of what reading a table changed.

use crate::common;

use common::{Bench, complaint};
use serde_json::Value;
use std::fmt::Write;

fn json(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", complaint(output)))
}

#[test]
fn completions_list_the_values_of_flags() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = bench.geodp(&["completions", shell]).stdout;
        let script = String::from_utf8_lossy(&script).into_owned();
        for name in ["geodp", "auto-s", "shuffle", "adam-bc", "by-norm", "cifar10", "resnet"] {
            assert!(script.contains(name), "{shell} does not complete {name}");
        }
    }
}

#[test]
fn a_config_may_leave_anything_out() {
    let bench = Bench::new();
    let csv = "[data]\nsource = \"csv\"\ntrain = \"data.csv\"\nschema = \"schema.toml\"\n";
    std::fs::write(bench.path("data.toml"), csv).unwrap();
    let train = ["train", "--config", "data.toml", "--steps", "3", "--json"];
    let run = |more: &[&str]| {
        let args: Vec<&str> = train.iter().chain(more).copied().collect();
        let output = bench.geodp(&args);
        assert!(output.status.success(), "{more:?}: {}", complaint(&output));
    };
    run(&["--out", "a"]);
    run(&["--out", "b", "--model", "mlp"]);
    let toml = |out: &str| std::fs::read_to_string(bench.path(out).join("run.toml")).unwrap();
    assert!(toml("a").contains("name = \"logistic\"") && toml("a").contains("clip_norm = "));
    assert!(toml("b").contains("name = \"mlp\"") && toml("b").contains("64"));
    // The run's own file, complete as it is, says the same again.
    let again = ["train", "--config", "a/run.toml", "--out", "c", "--json"];
    assert!(bench.geodp(&again).status.success());
    assert_eq!(toml("a"), toml("c"));
}

/// Version 1.0 of the format: magic, header of a multiple of 64 bytes, values in C order.
fn npy(descr: &str, shape: &str, values: &[u8]) -> Vec<u8> {
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values);
    bytes
}

#[test]
fn pairs_of_files_are_named_by_flags() {
    let bench = Bench::new();
    let (mut inputs, mut labels) = (Vec::new(), Vec::new());
    for i in 0..200_u32 {
        let x = [(i % 20) as f32 / 20.0, (i % 7) as f32 / 7.0];
        inputs.extend(x.iter().flat_map(|x| x.to_le_bytes()));
        labels.push(u8::from(x[0] > 0.5));
    }
    std::fs::write(bench.path("x.npy"), npy("<f4", "200, 2", &inputs)).unwrap();
    std::fs::write(bench.path("y.npy"), npy("|u1", "200,", &labels)).unwrap();
    let pair = ["--data", "x.npy", "--labels", "y.npy", "--classes", "2"];
    let test = ["--test", "x.npy", "--test-labels", "y.npy"];
    let train = |more: &[&str]| {
        let mut args = vec!["train", "--batch", "50", "--steps", "5", "--json"];
        args.extend(pair.iter().chain(more));
        bench.geodp(&args)
    };
    let output = train(&[&["--out", "a"][..], &test[..]].concat());
    assert!(output.status.success(), "{}", complaint(&output));
    assert_eq!(json(&output)["test"]["records"], 200);
    let output = train(&["--out", "b", "--holdout", "30"]);
    assert_eq!(json(&output)["test"]["records"], 30);
    for (more, expected) in [
        (&["--test", "x.npy"][..], "belong together"),
        (&["--schema", "schema.toml"][..], "--schema goes with tables"),
    ] {
        let output = train(&[&["--out", "x"][..], more].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(complaint(&output).contains(expected), "{}", complaint(&output));
    }
    // IDX: magic 0x0803 for 3-dimensional bytes, 0x0801 for their labels.
    let idx = |magic: u32, dims: &[u32], values: Vec<u8>| {
        let head = std::iter::once(&magic).chain(dims).flat_map(|n| n.to_be_bytes());
        head.chain(values).collect::<Vec<u8>>()
    };
    std::fs::write(bench.path("images"), idx(0x0803, &[200, 2, 2], vec![9; 800])).unwrap();
    std::fs::write(bench.path("digits"), idx(0x0801, &[200], labels)).unwrap();
    let mut args = vec!["train", "--data", "./images", "--labels", "digits", "--classes", "2"];
    args.extend(["--batch", "50", "--steps", "2", "--out", "c"]);
    let output = bench.geodp(&args);
    assert!(output.status.success(), "{}", complaint(&output));
}

#[test]
fn what_reading_a_table_changed_is_said_everywhere() {
    let bench = Bench::new();
    let mut more = std::fs::read_to_string(bench.path("data.csv")).unwrap();
    writeln!(more, "7.5,0.5,red,yes\n-1,0.5,red,no").unwrap();
    std::fs::write(bench.path("data.csv"), &more).unwrap();
    let args = bench.train("run", &["--epochs", "1"]);
    let said = complaint(&bench.geodp(&args));
    assert!(said.contains("2 cells outside the schema"), "{said}");
    assert!(said.contains("a: 1 raised to the range, 1 lowered to it"), "{said}");
    let mut args = bench.train("again", &["--epochs", "1"]);
    args.push("--json");
    let column = |result: &Value| {
        let column = &result["columns"][0];
        (column["below"].as_u64(), column["above"].as_u64())
    };
    let once = (Some(1), Some(1));
    assert_eq!(column(&json(&bench.geodp(&args))["imported"][0]), once);
    for args in [&["evaluate", "run"][..], &["evaluate", "run", "--data", "data.csv"]] {
        assert!(complaint(&bench.geodp(args)).contains("2 cells outside"), "{args:?}");
        let with_json = [args, &["--json"]].concat();
        assert_eq!(column(&json(&bench.geodp(&with_json))["imported"][0]), once);
    }
    let predict = ["predict", "run", "data.csv"];
    assert!(complaint(&bench.geodp(&predict)).contains("2 cells outside"));
    let with_json = [&predict[..], &["--json"]].concat();
    assert_eq!(column(&json(&bench.geodp(&with_json))["imported"]), once);
}

/// Features that a flag or a default chooses are kept as halves, and the run's file says so; those of a config file
/// are what it says, floats where it says nothing.
#[test]
fn new_features_are_kept_as_halves() {
    let bench = Bench::new();
    let pixels: Vec<u8> = (0..40 * 64_u32).map(|at| (at * at / 3 % 251) as u8).collect();
    let images = [0x0803, 40, 8, 8_u32].iter().flat_map(|n| n.to_be_bytes()).chain(pixels);
    let labels = [0x0801, 40_u32].iter().flat_map(|n| n.to_be_bytes());
    let labels = labels.chain((0..40).map(|at| at % 2));
    std::fs::write(bench.path("images"), images.collect::<Vec<u8>>()).unwrap();
    std::fs::write(bench.path("labels"), labels.collect::<Vec<u8>>()).unwrap();
    std::fs::write(bench.path("old.toml"), "[features]\nkind = \"scattering\"\ngroups = 9\n")
        .unwrap();

    let data = ["--data", "./images", "--labels", "labels", "--classes", "2"];
    let features = |out: &str, more: &[&str]| -> String {
        let train = ["train", "--batch", "10", "--steps", "2", "--out", out];
        let output = bench.geodp(&[&train[..], &data, more].concat());
        assert!(output.status.success(), "{}", complaint(&output));
        let text = std::fs::read_to_string(bench.path(out).join("run.toml")).unwrap();
        let table = text.split("[features]\n").nth(1).unwrap();
        table.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
    };
    let flag = ["--features", "scattering"];
    let half = "kind = \"scattering\"; storage = \"half\"";
    assert_eq!(features("default", &[]), half);
    assert_eq!(features("flag", &[&flag[..], &["--model", "logistic"]].concat()), half);
    let old = "kind = \"scattering\"; groups = 9";
    assert_eq!(features("old", &["--config", "old.toml"]), old);
    assert_eq!(features("both", &[&["--config", "old.toml"], &flag[..]].concat()), old);
    assert_eq!(features("again", &["--config", "default/run.toml"]), half);
}
