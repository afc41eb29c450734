//! Every command as a user calls it: results, JSON, and errors that say what is wrong.

use crate::common;

use common::{Bench, complaint};
use serde_json::Value;

fn text(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_table_from_file_to_predictions() {
    let bench = Bench::new();
    let args = bench.train("run", &["--model", "logistic", "--epsilon", "4", "--epochs", "15"]);
    let output = bench.geodp(&args);
    assert!(output.status.success(), "{}", complaint(&output));
    let spent = text(&output);
    let spent: f64 = spent.split("certified ε = ").nth(1).unwrap()[..6].parse().unwrap();
    assert!(spent <= 4.0 && spent > 3.99, "{spent}");
    let files = ["run.toml", "ledger.jsonl", "metrics.jsonl", "checkpoint", "model.safetensors"];
    for file in files.iter().chain(&["statement.json", "report.html"]) {
        assert!(bench.path("run").join(file).exists(), "{file} is missing");
    }
    assert!(!bench.path("run/noise.key").exists());

    let output = bench.geodp(&["evaluate", "run", "--json"]);
    let measured: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(measured["accuracy"].as_f64().unwrap() > 0.8, "{measured}");
    assert!(measured["privacy"].as_str().unwrap().starts_with("certified"));

    let output = bench.geodp(&["predict", "run", "data.csv"]);
    let csv = text(&output);
    let mut lines = csv.lines();
    assert_eq!(lines.next().unwrap(), "row,class,p_no,p_yes");
    assert_eq!(lines.clone().count(), 1200);
    let first: Vec<&str> = lines.next().unwrap().split(',').collect();
    let sum: f64 = first[2].parse::<f64>().unwrap() + first[3].parse::<f64>().unwrap();
    assert!((sum - 1.0).abs() < 1e-5);

    let output = bench.geodp(&["report", "run", "--json"]);
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["finished"], Value::Bool(true));
    assert_eq!(shown["statement"]["claims"][0]["kind"], "certified");
}

#[test]
fn geodp_never_claims_certainty() {
    let bench = Bench::new();
    let more =
        ["--mechanism", "geodp", "--beta", "0.1", "--noise-multiplier", "1", "--epochs", "2"];
    let mut args = bench.train("run", &more);
    args.push("--json");
    let output = bench.geodp(&args);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let claims = result["statement"]["claims"].as_array().unwrap();
    let kinds: Vec<&str> = claims.iter().map(|c| c["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["conditional", "as-published"]);
    assert!(claims[0]["assumption"].as_str().unwrap().contains("nothing enforces it"));
    assert!((claims[1]["delta_prime_at_most"].as_f64().unwrap() - 0.9).abs() < 1e-12);
    let page = std::fs::read_to_string(bench.path("run/report.html")).unwrap();
    assert!(page.contains("conditional ε") && !page.contains("certified ε"));
}

/// The run folder's run.toml is complete: with its seed it gives the same weights again.
#[test]
fn a_run_can_be_run_again_from_its_config() {
    let bench = Bench::new();
    let args = bench.train("first", &["--seed", "5", "--epochs", "2", "--threads", "2"]);
    let args: Vec<&str> = {
        // --threads is given twice by the bench: keep the last.
        let at = args.iter().position(|a| *a == "--threads").unwrap();
        args[..at].iter().chain(&args[at + 2..]).copied().collect()
    };
    assert!(bench.geodp(&args).status.success());
    let again = ["train", "--config", "first/run.toml", "--out", "second", "--threads", "1"];
    let output = bench.geodp(&again);
    assert!(output.status.success(), "{}", complaint(&output));
    assert!(complaint(&output).contains("seed"), "a seeded run is warned of");
    let model = |run: &str| std::fs::read(bench.path(run).join("model.safetensors")).unwrap();
    assert!(model("first") == model("second"));
}

#[test]
fn bad_input_is_refused_with_code_2_and_a_reason() {
    let bench = Bench::new();
    let cases: Vec<(Vec<&str>, &str)> = vec![
        (bench.train("x", &["--epsilon", "1", "--noise-multiplier", "1"]), "both given"),
        (bench.train("x", &["--beta", "0.5"]), "DP has none"),
        (bench.train("x", &["--mechanism", "geodp"]), "needs beta"),
        (bench.train("x", &["--mechanism", "geo"]), "a similar value exists: 'geodp'"),
        (bench.train("x", &["--clip", "auto"]), "possible values: flat, auto-s, psac"),
        (bench.train("x", &["--optimizer", "sgd", "--momentum", "0.5"]), "--momentum goes with"),
        (
            bench.train("x", &["--model", "transformer"]),
            "possible values: logistic, mlp, cnn, tanh-cnn, resnet",
        ),
        (bench.train("x", &["--config", "missing.toml"]), "missing.toml"),
        (bench.train("x", &["--test", "missing.csv"]), "missing.csv"),
        (vec!["train", "--batch", "100000", "--out", "x"], "exceeds the 60000 records"),
        (vec!["train", "--data", "data.csv", "--out", "x"], "--schema"),
        (vec!["train", "--data", "words.bin", "--out", "x"], "needs --labels FILE and --classes K"),
        (vec!["train", "--data", "mnits", "--out", "x"], "a similar value exists: 'mnist'"),
        (vec!["train", "--resume", "nowhere"], "not a run folder"),
        (vec!["train", "--resume", "nowhere", "--epochs", "3"], "give no other flags"),
        (vec!["evaluate", "nowhere"], "no finished run"),
        (vec!["predict", "nowhere", "data.csv"], "no finished run"),
        (vec!["data", "get", "imagenet"], "cifar10"),
        (vec!["frobnicate"], "frobnicate"),
    ];
    for (args, expected) in cases {
        let output = bench.geodp(&args);
        let message = complaint(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains(expected), "{args:?} should say “{expected}”: {message}");
        assert!(!bench.path("x").exists(), "{args:?} left a folder behind");
    }
}

#[test]
fn a_bad_cell_is_named_by_file_line_and_column() {
    let bench = Bench::new();
    let data = std::fs::read_to_string(bench.path("data.csv")).unwrap();
    let mut lines: Vec<String> = data.lines().map(str::to_owned).collect();
    lines[7] = "zero,0.5,red,yes".to_owned();
    std::fs::write(bench.path("data.csv"), lines.join("\n")).unwrap();
    let output = bench.geodp(&bench.train("x", &["--epochs", "1"]));
    let message = complaint(&output);
    assert_eq!(output.status.code(), Some(2));
    for part in ["data.csv", "8", "zero"] {
        assert!(message.contains(part), "“{part}” is not in: {message}");
    }
}

#[test]
fn a_taken_folder_is_not_overwritten() {
    let bench = Bench::new();
    let args = bench.train("run", &["--epochs", "1"]);
    assert!(bench.geodp(&args).status.success());
    let before = std::fs::read(bench.path("run/model.safetensors")).unwrap();
    let output = bench.geodp(&args);
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains("already holds a run"));
    assert!(std::fs::read(bench.path("run/model.safetensors")).unwrap() == before);
}

#[test]
fn nothing_learned_is_said_loudly() {
    let bench = Bench::new();
    // Noise alone, and a seed under which it is of no use.
    let more = ["--noise-multiplier", "300", "--steps", "3", "--seed", "2"];
    let output = bench.geodp(&bench.train("run", &more));
    assert!(complaint(&output).contains("NOTHING WAS LEARNED"), "{}", complaint(&output));
}

#[test]
fn help_has_an_example_for_every_command() {
    let bench = Bench::new();
    let help = text(&bench.geodp(&["--help"]));
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.len() >= 7, "{commands:?}");
    for command in commands {
        let help = text(&bench.geodp(&[command, "--help"]));
        assert!(help.contains("Example"), "{command} --help has no example");
    }
    assert!(text(&bench.geodp(&["completions", "bash"])).contains("geodp"));
    assert!(text(&bench.geodp(&["data", "list", "--json"])).contains("mnist"));
}

/// Whoever reads the output may stop reading: nothing panics, results and notes alike.
#[cfg(unix)]
#[test]
fn a_closed_pipe_ends_quietly() {
    use std::process::Stdio;
    let bench = Bench::new();
    let plan = ["plan", "--epsilon", "3", "--delta", "1e-5", "--records", "60000"];
    let plan = [&plan[..], &["--batch", "600", "--epochs", "1", "--json"]].concat();
    for args in [plan, vec!["--help"], vec!["data", "list"], bench.train("run", &["--steps", "3"])]
    {
        // The reader is gone before anything is written.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = bench.command(&args).stdout(writer).output().unwrap();
        let noise = complaint(&output);
        assert!(output.status.success() && !noise.contains("panicked"), "{args:?}: {noise}");
    }
    assert!(bench.path("run/model.safetensors").exists());
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = bench.command(&bench.train("deaf", &["--steps", "3"]));
    let output = command.stdout(Stdio::piped()).stderr(writer).output().unwrap();
    assert!(output.status.success());
}
