//! What is stated is what was charged, and what is private is marked: the commands on bent folders.

use crate::common;

use common::{Bench, complaint};
use serde_json::Value;

fn json(output: &std::process::Output) -> Value {
    assert!(output.status.success(), "{}", complaint(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(output: &std::process::Output) -> String {
    assert!(output.status.success(), "{}", complaint(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A finished run in `run`.
fn finished(bench: &Bench, more: &[&str]) -> Value {
    let mut args = bench.train("run", &["--noise-multiplier", "0.6", "--steps", "12", "--json"]);
    args.extend(more);
    json(&bench.geodp(&args))
}

#[test]
fn an_edited_noise_multiplier_is_refused_by_every_command() {
    let bench = Bench::new();
    finished(&bench, &[]);
    let path = bench.path("run/run.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    let other = config.replace("noise_multiplier = 0.6", "noise_multiplier = 60.0");
    assert_ne!(config, other);
    std::fs::write(&path, other).unwrap();
    for args in [
        vec!["report", "run"],
        vec!["evaluate", "run"],
        vec!["predict", "run", "data.csv"],
        vec!["train", "--resume", "run"],
    ] {
        let output = bench.geodp(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = complaint(&output);
        assert!(said.contains("run.toml was changed") || said.contains("finished"), "{said}");
    }
}

#[test]
fn a_statement_says_neighbours_arithmetic_unit_and_warnings() {
    let bench = Bench::new();
    let result = finished(&bench, &["--delta", "0.01"]);
    let statement = &result["statement"];
    assert_eq!(statement["adjacency"], "zero-out");
    assert_eq!(statement["claims"][0]["adjacency"], "zero-out");
    assert_eq!(statement["unit"], "record");
    assert!(statement["arithmetic"].is_string(), "{statement}");
    assert!(statement["warnings"][0].as_str().unwrap().contains("not below 1/N"), "{statement}");
    let shown = text(&bench.geodp(&["report", "run"]));
    for part in ["zero-out", "Arithmetic: ", "not below 1/N", "this run alone"] {
        assert!(shown.contains(part), "“{part}” is not in {shown}");
    }
}

/// Where the owner's part of a page begins, and the caption of the chart of accuracies.
const OWNERS: &str = "leave this section, and metrics.jsonl, out";
const CHART: &str = "Accuracy on the records that took no part in training.";

#[test]
fn figures_from_private_records_are_marked_everywhere() {
    let bench = Bench::new();
    let result = finished(&bench, &[]);
    assert_eq!(result["test"]["is"], "private");
    let page = std::fs::read_to_string(bench.path("run/report.html")).unwrap();
    let owner = page.find(OWNERS).unwrap();
    assert!(page.find(CHART).unwrap() > owner, "the chart is the owner's");
    assert!(page[..owner].contains("for the owner, below"));
    for part in ["(of “yes”)", "Confusion matrix", "<title>Calibration", "Recall is the share"]
    {
        assert!(page.find(part).is_some_and(|at| at > owner), "{part} is the owner's");
    }
    assert!(text(&bench.geodp(&["evaluate", "run"])).contains("no ε covers them"));
    assert_eq!(json(&bench.geodp(&["evaluate", "run", "--json"]))["is"], "private");

    // Declared public, it may be shown; and the terminal says which it is.
    std::fs::copy(bench.path("data.csv"), bench.path("test.csv")).unwrap();
    let more = ["--test", "test.csv", "--test-is", "public", "--steps", "3"];
    let shown = text(&bench.geodp(&bench.train("open", &more)));
    assert!(shown.contains("test accuracy"), "{shown}");
    let page = std::fs::read_to_string(bench.path("open/report.html")).unwrap();
    assert!(page.find(CHART).unwrap() < page.find(OWNERS).unwrap());
    assert!(page.find("Confusion matrix").unwrap() < page.find(OWNERS).unwrap());
    // Drawn again from the folder, it is the same page.
    assert!(bench.geodp(&["report", "open"]).status.success());
    assert_eq!(std::fs::read_to_string(bench.path("open/report.html")).unwrap(), page);
    let shown = text(&bench.geodp(&bench.train("closed", &["--steps", "3"])));
    assert!(!shown.contains("test accuracy") && shown.contains("not for release"), "{shown}");
}

#[test]
fn a_released_accuracy_is_noisy_and_charged() {
    let bench = Bench::new();
    let plain = finished(&bench, &[]);
    let more =
        ["--noise-multiplier", "0.6", "--steps", "12", "--release-accuracy", "0.5", "--json"];
    let result = json(&bench.geodp(&bench.train("released", &more)));
    let accuracy = &result["statement"]["accuracy"];
    assert_eq!(accuracy["epsilon"], 0.5);
    let (noisy, exact) =
        (accuracy["accuracy"].as_f64().unwrap(), result["test"]["accuracy"].as_f64().unwrap());
    // 6 standard errors are passed once in 5·10⁸.
    let error = accuracy["standard_error"].as_f64().unwrap();
    assert!((noisy - exact).abs() < 6.0 * error && error > 0.01, "{noisy} for {exact} ± {error}");
    assert_ne!(noisy, exact);
    let upper = |r: &Value| r["statement"]["claims"][0]["epsilon"]["upper"].as_f64().unwrap();
    assert!(upper(&result) > upper(&plain), "the release is in ε");
    let ledger = std::fs::read_to_string(bench.path("released/ledger.jsonl")).unwrap();
    assert!(ledger.lines().last().unwrap().contains("\"type\":\"gaussian\""), "{ledger}");
    let shown = json(&bench.geodp(&["report", "released", "--json"]));
    assert_eq!(shown["statement"]["accuracy"], *accuracy);
    // A calibrated run stays within its target with it.
    let more = ["--epsilon", "2", "--steps", "12", "--release-accuracy", "0.5", "--json"];
    let result = json(&bench.geodp(&bench.train("calibrated", &more)));
    assert!(upper(&result) <= 2.0 && upper(&result) > 1.99);
    // Public records need no noise.
    let more = ["--test", "data.csv", "--test-is", "public", "--release-accuracy", "0.5"];
    let output = bench.geodp(&bench.train("x", &more));
    assert_eq!(output.status.code(), Some(2), "{}", complaint(&output));
}

#[test]
fn runs_on_one_data_set_add_up_until_none_fits() {
    let bench = Bench::new();
    let ledger = ["--data-ledger", "patients.ledger", "--noise-multiplier", "1", "--steps", "40"];
    let first = [&ledger[..], &["--total-epsilon", "4.0", "--json"]].concat();
    let first = json(&bench.geodp(&bench.train("first", &first)));
    let alone = first["statement"]["claims"][0]["epsilon"]["upper"].as_f64().unwrap();
    assert_eq!(first["statement"]["data_set"]["runs"], 1);
    let second = json(&bench.geodp(&bench.train("second", &[&ledger[..], &["--json"]].concat())));
    let total = &second["statement"]["data_set"]["claim"]["epsilon"]["upper"];
    assert!(total.as_f64().unwrap() > alone && total.as_f64().unwrap() <= 4.0, "{second}");
    let output = bench.geodp(&bench.train("third", &ledger));
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains("above its limit of 4"), "{}", complaint(&output));
    assert!(!bench.path("third").exists(), "a refused run leaves nothing");
    // Without naming it again in flags, a config that names it is held to it too.
    let output = bench.geodp(&["train", "--config", "first/run.toml", "--out", "fourth"]);
    assert_eq!(output.status.code(), Some(2), "{}", complaint(&output));
}

#[cfg(unix)]
#[test]
fn private_files_are_their_owners_and_keys_are_gone() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    finished(&bench, &[]);
    for name in ["checkpoint", "metrics.jsonl", "data.key", "report.html"] {
        let mode = std::fs::metadata(bench.path("run").join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert!(!bench.path("run/noise.key").exists());
    // No hash that anyone could compute: the same data has another one under another key.
    let ledger = std::fs::read_to_string(bench.path("run/ledger.jsonl")).unwrap();
    let other = Bench::new();
    finished(&other, &[]);
    let again = std::fs::read_to_string(other.path("run/ledger.jsonl")).unwrap();
    let hash = |text: &str| {
        let header: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        header["run"]["data"].as_str().unwrap().to_owned()
    };
    assert_ne!(hash(&ledger), hash(&again));
}

/// The model file's own words are shown as its own, and cannot draw on the terminal.
#[test]
fn a_model_files_words_are_its_own() {
    let bench = Bench::new();
    finished(&bench, &[]);
    let path = bench.path("run/model.safetensors");
    let bytes = std::fs::read(&path).unwrap();
    let header = String::from_utf8_lossy(&bytes).into_owned();
    let at = header.find("certified").unwrap();
    let mut bent = bytes.clone();
    // As long as before, so that the file stays one: “certified ” becomes an escape of the terminal.
    bent[at..at + 10].copy_from_slice(b"\\\\u001b[2J");
    std::fs::write(&path, &bent).unwrap();
    let shown = text(&bench.geodp(&["evaluate", "run"]));
    assert!(shown.contains("claimed by the file: ") && !shown.contains('\u{1b}'), "{shown}");
    assert!(shown.contains("privacy   certified ε = "), "the ledger's own: {shown}");
}

/// The model file names its records by the ledger's keyed hash, and is held to it with and without a ledger.
#[test]
fn a_model_file_knows_its_records() {
    let bench = Bench::new();
    finished(&bench, &[]);
    let (model, ledger) = (bench.path("run/model.safetensors"), bench.path("run/ledger.jsonl"));
    let bytes = std::fs::read(&model).unwrap();
    let header = std::fs::read_to_string(&ledger).unwrap();
    let header: Value = serde_json::from_str(header.lines().next().unwrap()).unwrap();
    let hash = header["run"]["data"].as_str().unwrap().as_bytes();
    let at = bytes.windows(hash.len()).position(|window| window == hash).unwrap();
    let mut bent = bytes.clone();
    bent[at] = if bent[at] == b'0' { b'1' } else { b'0' };
    std::fs::write(&model, &bent).unwrap();
    for args in [&["evaluate", "run"][..], &["predict", "run", "data.csv"]] {
        let output = bench.geodp(args);
        assert_eq!(output.status.code(), Some(2));
        assert!(complaint(&output).contains("other records than its ledger paid for"));
    }

    std::fs::write(&model, &bytes).unwrap();
    std::fs::remove_file(&ledger).unwrap();
    assert!(bench.geodp(&["evaluate", "run"]).status.success());
    let table = std::fs::read_to_string(bench.path("data.csv")).unwrap();
    std::fs::write(bench.path("data.csv"), table.replacen("red", "blue", 1)).unwrap();
    let output = bench.geodp(&["evaluate", "run"]);
    assert_eq!(output.status.code(), Some(2), "{}", complaint(&output));
    assert!(complaint(&output).contains("fingerprint differs"), "{}", complaint(&output));
}
