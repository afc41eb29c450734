//! The audits and `train --measure` as a user calls them: results, pages, going on after a stop.

use crate::common;

use common::{Bench, complaint};
use serde_json::Value;
use std::time::Duration;

fn json(output: &std::process::Output) -> Value {
    assert!(output.status.success(), "{}", complaint(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn read(bench: &Bench, path: &str) -> String {
    std::fs::read_to_string(bench.path(path)).unwrap()
}

fn measured_run<'a>(bench: &Bench, out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = bench.train(out, &["--mechanism", "geodp", "--beta", "0.1"]);
    args.extend(["--noise-multiplier", "1", "--model", "mlp", "--hidden", "8", "--measure", "100"]);
    args.extend(more);
    args
}

#[test]
fn measured_numbers_stay_with_the_owner() {
    let bench = Bench::new();
    let result = json(&bench.geodp(&measured_run(&bench, "run", &["--epochs", "2", "--json"])));
    let worst = result["measured"]["with_amplification"]["largest"].as_f64().unwrap();
    assert!(worst > 0.0 && result["measured"]["notice"].as_str().unwrap().contains("owner"));
    let file: Value = serde_json::from_str(&read(&bench, "run/measured.json")).unwrap();
    assert_eq!(file["with_amplification"]["largest"].as_f64(), Some(worst));
    assert_eq!(file["followed"]["totals"].as_array().unwrap().len(), 100);
    // What is for release says nothing of it.
    for public in ["run/statement.json", "run/ledger.jsonl"] {
        assert!(!read(&bench, public).contains("measured"), "{public}");
    }
    let page = read(&bench, "run/report.html");
    assert!(page.contains("Measured per-record loss") && page.contains("not for release"));
    assert!(bench.geodp(&["report", "run"]).status.success());
    assert_eq!(read(&bench, "run/report.html"), page, "the section survives a new page");
    let left = std::fs::read_dir(bench.path("run")).unwrap();
    let names = left.map(|e| e.unwrap().file_name().into_string().unwrap());
    assert!(names.into_iter().all(|name| !name.starts_with("following-")));
}

/// β is GeoDP's: a measured DP-SGD run speaks of none.
#[test]
fn measured_dp_speaks_of_no_beta() {
    let bench = Bench::new();
    let more = ["--noise-multiplier", "1", "--model", "logistic", "--epochs", "1"];
    let mut args = bench.train("run", &more);
    args.extend(["--measure", "50"]);
    let output = bench.geodp(&args);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && printed.contains("measured on this data"), "{printed}");
    assert!(!printed.contains('β'), "{printed}");
    let page = read(&bench, "run/report.html");
    let section = page.split("Measured per-record loss").nth(1).unwrap();
    assert!(!section.contains("β that"), "{section}");
    let file: Value = serde_json::from_str(&read(&bench, "run/measured.json")).unwrap();
    assert!(file["beta_safe"].is_null());
}

#[test]
fn measuring_without_noise_is_refused() {
    let bench = Bench::new();
    let args = bench.train("run", &["--mechanism", "none", "--epochs", "1", "--measure", "5"]);
    let output = bench.geodp(&args);
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains("there is none"), "{}", complaint(&output));
}

/// Killed again and again, a measured run has measured every step exactly once.
#[test]
fn kills_do_not_change_what_was_measured() {
    let bench = Bench::new();
    let more = ["--seed", "3", "--steps", "600", "--checkpoint-every", "2"];
    assert!(bench.geodp(&measured_run(&bench, "whole", &more)).status.success());
    let mut child = bench.command(&measured_run(&bench, "killed", &more)).spawn().unwrap();
    while !bench.path("killed/metrics.jsonl").exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let (mut kills, mut state) = (0, 5_u64);
    while kills < 15 && !bench.path("killed/statement.json").exists() {
        let resume = ["train", "--resume", "killed", "--threads", "1"];
        let mut child = bench.command(&resume).spawn().unwrap();
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_micros(4_000 + (state >> 40) % 20_000));
        child.kill().unwrap();
        kills += u32::from(!child.wait().unwrap().success());
    }
    assert!(kills >= 3, "only {kills} kills before the end: make the run longer");
    let output = bench.geodp(&["train", "--resume", "killed"]);
    assert!(output.status.success() || complaint(&output).contains("finished"));
    assert_eq!(read(&bench, "killed/measured.json"), read(&bench, "whole/measured.json"));
}

#[test]
fn the_mechanism_audit_shows_both_cases_and_goes_on() {
    let bench = Bench::new();
    let args = ["audit", "mechanism", "--dim", "3000", "--beta", "0.3", "--batch", "256"];
    let args: Vec<&str> = args.into_iter().chain(["--repeats", "1000", "--out", "a"]).collect();
    let with_json: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    let result = json(&bench.geodp(&with_json));
    let cases = result["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 6);
    let bound = |case: &Value| case["bound"]["epsilon_lower"].as_f64().unwrap();
    let claim = |case: &Value| case["claims"][0]["epsilon"]["upper"].as_f64().unwrap();
    for case in cases[..3].iter().chain(&cases[4..]) {
        assert!(bound(case) <= claim(case), "{case}");
    }
    assert_eq!(cases[3]["claims"][0]["kind"], "as-published");
    assert!(bound(&cases[3]) > claim(&cases[3]), "{}", cases[3]);
    let page = read(&bench, "a/report.html");
    assert!(page.contains("cancelling batch") && page.contains("<svg"));

    std::fs::remove_file(bench.path("a/dp-ordinary.json")).unwrap();
    std::fs::remove_file(bench.path("a/report.html")).unwrap();
    assert_eq!(json(&bench.geodp(&with_json)), result);
    assert_eq!(read(&bench, "a/report.html"), page);
    let other = ["audit", "mechanism", "--dim", "3001", "--out", "a"];
    assert_eq!(bench.geodp(&other).status.code(), Some(2), "cells of two audits do not mix");
    assert_eq!(bench.geodp(&["audit", "mechanism", "--beta", "2"]).status.code(), Some(2));
}

#[test]
fn one_run_is_held_against_its_claim() {
    let bench = Bench::new();
    let train = ["--data", "data.csv", "--schema", "schema.toml", "--model", "logistic"];
    let audit = |out: &'static str, more: &[&'static str]| -> Vec<&'static str> {
        let args = ["audit", "one-run", "--out", out, "--canaries", "200", "--json"];
        args.into_iter().chain(train).chain(more.iter().copied()).collect()
    };
    let flags = ["--noise-multiplier", "1", "--batch", "200", "--steps", "20", "--seed", "1"];
    for kind in ["gradient", "mislabelled", "blank"] {
        let more: Vec<&str> = flags.into_iter().chain(["--kind", kind]).collect();
        let result = json(&bench.geodp(&audit(kind, &more)));
        let (bound, claim) = (&result["epsilon_lower"], &result["claims"][0]["epsilon"]["upper"]);
        assert!(bound.as_f64().unwrap() <= claim.as_f64().unwrap(), "{kind}");
        assert_eq!(result["claims"][0]["kind"], "certified");
        assert!(read(&bench, &format!("{kind}/report.html")).contains("certified ε"));
        assert_eq!(json(&bench.geodp(&audit(kind, &more))), result, "the scores are kept");
    }
    let output = bench.geodp(&audit("none", &["--mechanism", "none", "--epochs", "1"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains("nothing to audit"));
}

#[test]
fn members_are_attacked_and_stopped_audits_go_on() {
    let bench = Bench::new();
    let more = ["--model", "logistic", "--epsilon", "4", "--epochs", "2", "--seed", "1"];
    assert!(bench.geodp(&bench.train("run", &more)).status.success());
    let args = ["audit", "membership", "run", "--records", "40", "--shadow-models", "4"];
    let args: Vec<&str> = args.into_iter().chain(["--seed", "2", "--json"]).collect();
    let result = json(&bench.geodp(&args));
    let attacks = result["attacks"].as_array().unwrap();
    let names: Vec<&str> = attacks.iter().map(|a| a["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["loss", "LiRA, online", "LiRA, offline", "RMIA"]);
    assert!(attacks.iter().all(|a| (0.0..=1.0).contains(&a["roc"]["auc"].as_f64().unwrap())));
    assert!(result["privacy_of_the_model"].as_str().unwrap().starts_with("certified"));
    // The headline is the attack that finds most members at 1 % false alarms, with its limits.
    let found = |a: &Value| a["roc"]["tpr_at_1_percent"].as_f64().unwrap();
    let best = attacks.iter().find(|a| a["name"] == result["strongest"]).unwrap();
    assert!(attacks.iter().all(|a| found(a) <= found(best)));
    for attack in attacks {
        let limits = attack["tpr_at_1_percent_limits"].as_array().unwrap();
        let limits: Vec<f64> = limits.iter().map(|l| l.as_f64().unwrap()).collect();
        assert!(limits[0] <= found(attack) && found(attack) <= limits[1], "{attack}");
        assert!(limits[1] - limits[0] > 0.02, "40 members cannot say more: {attack}");
    }
    assert!(read(&bench, "run/audit-membership/report.html").contains("strongest attack"));
    // One shadow model lost: only that one is trained again, and the result is the same.
    std::fs::remove_file(bench.path("run/audit-membership/shadow-002.json")).unwrap();
    assert_eq!(json(&bench.geodp(&args)), result);

    std::fs::write(bench.path("in.txt"), "0\n5\n\n7\n").unwrap();
    std::fs::write(bench.path("out.txt"), "1\n2\n").unwrap();
    std::fs::write(bench.path("bad.txt"), "1\nx\n").unwrap();
    let named = |out: &'static str| {
        let files = ["--members", "in.txt", "--non-members", out, "--shadow-models", "2"];
        let args = ["audit", "membership", "run", "--out", "named", "--json"];
        bench.geodp(&args.into_iter().chain(files).collect::<Vec<_>>())
    };
    let result = json(&named("out.txt"));
    assert_eq!((result["members"].as_u64(), result["non_members"].as_u64()), (Some(3), Some(2)));
    let output = named("bad.txt");
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains("line 2"), "{}", complaint(&output));
    for (flag, value) in [("--shadow-models", "3"), ("--records", "1000000")] {
        let output = bench.geodp(&["audit", "membership", "run", flag, value]);
        assert_eq!(output.status.code(), Some(2), "{flag}: {}", complaint(&output));
    }
    assert_eq!(bench.geodp(&["audit", "membership", "nowhere"]).status.code(), Some(2));
}
