//! `geodp account` and `geodp plan`, run as commands.

use serde_json::Value;
use std::process::{Command, Output};

fn geodp(line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_geodp"))
        .args(line.split_whitespace())
        .output()
        .expect("the binary runs")
}

fn json(line: &str) -> Value {
    let output = geodp(&format!("{line} --json"));
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("standard output is JSON")
}

const RUN: &str = "account --sample-rate 0.01 --noise-multiplier 1 --steps 1000 --delta 1e-5";

#[test]
fn account_prints_the_bracket() {
    let report = json(RUN);
    let (lower, upper) = (
        report["claims"][0]["epsilon"]["lower"].as_f64().unwrap(),
        report["claims"][0]["epsilon"]["upper"].as_f64().unwrap(),
    );
    assert!(lower <= 1.8284 && 1.8284 <= upper && upper - lower < 0.01 * upper, "{report}");
    assert_eq!(
        (&report["accountant"], &report["adjacency"]),
        (&Value::from("pld"), &Value::from("zero-out"))
    );
    assert_eq!(report["claims"][0]["kind"], "certified");
    assert_eq!(report["claims"][0]["arithmetic"], "floating-point");
    let added = json(&format!("{RUN} --adjacency add-remove"));
    assert_eq!(added["claims"][0]["epsilon"]["upper"].as_f64().unwrap(), upper);

    let renyi = json(&format!("{RUN} --accountant rdp"));
    assert!((renyi["claims"][0]["epsilon"]["upper"].as_f64().unwrap() - 2.1014).abs() < 1e-4);
    let replace = json(&format!("{RUN} --adjacency replace-one"));
    assert!(replace["claims"][0]["epsilon"]["lower"].as_f64().unwrap() > upper);

    let text = String::from_utf8(geodp(RUN).stdout).unwrap();
    assert!(text.starts_with("certified ε = 1.8"), "{text}");
}

#[test]
fn plan_meets_its_target() {
    let line = "plan --epsilon 3 --delta 1e-5 --records 60000 --batch 600";
    let report = json(&format!("{line} --epochs 10"));
    let upper = report["claims"][0]["epsilon"]["upper"].as_f64().unwrap();
    assert!((2.997..=3.0).contains(&upper), "{report}");
    assert_eq!(report["steps"], 1000);
    assert_eq!(report, json(&format!("{line} --steps 1000")));
    assert_eq!(json(&format!("{line} --steps 1000 --unit patient"))["unit"], "patient");
    let sigmas: Vec<f64> = report["budgets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["noise_multiplier"].as_f64().unwrap())
        .collect();
    assert!(sigmas.len() == 6 && sigmas.windows(2).all(|pair| pair[0] > pair[1]), "{sigmas:?}");
    assert_eq!(report["noise_multiplier"].as_f64().unwrap(), sigmas[3]);
}

/// As `geodp train`: the target is the conditional ε, so GeoDP needs √2 times DP's noise.
#[test]
fn plan_for_geodp_meets_the_conditional_epsilon() {
    let line = "plan --epsilon 3 --delta 1e-5 --records 60000 --batch 600 --epochs 10";
    let dp = json(line)["noise_multiplier"].as_f64().unwrap();
    let report = json(&format!("{line} --mechanism geodp --beta 0.1 --dim 785"));
    let upper = report["claims"][0]["epsilon"]["upper"].as_f64().unwrap();
    assert!((2.99..=3.0).contains(&upper), "{report}");
    let ratio = report["noise_multiplier"].as_f64().unwrap() / dp;
    assert!((ratio - std::f64::consts::SQRT_2).abs() < 3e-3, "{ratio}");
}

#[test]
fn geodp_is_never_certified() {
    let geometric = "--mechanism geodp --beta 0.1 --dim 785";
    for line in [RUN, "plan --epsilon 3 --delta 1e-5 --records 60000 --batch 600 --steps 100"] {
        let report = json(&format!("{line} {geometric}"));
        let kinds: Vec<&Value> =
            report["claims"].as_array().unwrap().iter().map(|claim| &claim["kind"]).collect();
        assert_eq!(kinds, ["conditional", "as-published"], "{report}");
        assert_eq!(report["claims"][1]["delta_prime_at_most"], 0.9);
        let assumption = report["claims"][0]["assumption"].as_str().unwrap();
        assert!(assumption.contains("nothing enforces it"), "{assumption}");
        let text = String::from_utf8(geodp(&format!("{line} {geometric}")).stdout).unwrap();
        assert!(text.contains("as published ε = ") && text.contains("conditional ε = "), "{text}");
        assert!(text.contains("no certified epsilon") && !text.contains("certified ε"), "{text}");
    }
}

/// Certified GeoDP costs what DP costs, up to the part of δ that is set aside and named; a target is
/// met by the same noise to a thousandth.
#[test]
fn certified_geodp_costs_what_dp_costs_and_names_its_part_of_delta() {
    let upper = |report: &Value| report["claims"][0]["epsilon"]["upper"].as_f64().unwrap();
    let part = |report: &Value| report["delta_of_misses"].as_f64().unwrap();
    let (dp, report) = (json(RUN), json(&format!("{RUN} --mechanism geodp-certified")));
    assert_eq!(report["claims"][0]["kind"], "certified");
    assert_eq!(report["claims"].as_array().unwrap().len(), 1);
    assert!(dp.get("delta_of_misses").is_none());
    assert!(upper(&report) > upper(&dp) && upper(&report) < 1.005 * upper(&dp), "{report}");
    assert!(part(&report) > 0.8e-7 && part(&report) <= 1e-7, "{report}");
    let line = "plan --epsilon 3 --delta 1e-5 --records 60000 --batch 600 --epochs 10";
    let (dp, report) = (json(line), json(&format!("{line} --mechanism geodp-certified")));
    assert!((2.99..=3.0).contains(&upper(&report)), "{report}");
    assert!(part(&report) > 0.8e-7 && part(&report) <= 1e-7, "{report}");
    let sigma = |report: &Value| report["noise_multiplier"].as_f64().unwrap();
    assert!(sigma(&report) >= sigma(&dp) && sigma(&report) < 1.003 * sigma(&dp), "{report}");
    let text = String::from_utf8(geodp(&format!("{line} --mechanism geodp-certified")).stdout);
    let text = text.unwrap();
    assert!(text.contains("certified ε = ") && text.contains("of δ, "), "{text}");
    assert!(!text.contains("no certified"), "{text}");
}

/// Whatever is printed bounds what was spent: an ε of 3.4e-5 does not read as 0.
#[test]
fn a_small_epsilon_is_not_printed_as_zero() {
    let line = "account --sample-rate 1.2e-4 --noise-multiplier 3 --steps 1 --delta 1e-5";
    let text = String::from_utf8(geodp(line).stdout).unwrap();
    let upper = json(line)["claims"][0]["epsilon"]["upper"].as_f64().unwrap();
    let printed = text.split("certified ε = ").nth(1).unwrap().split(' ').next().unwrap();
    let printed: f64 = printed.parse().unwrap();
    assert!(upper > 0.0 && printed >= upper && printed < 1.1 * upper, "{text} for {upper}");
    assert!(!text.contains("0.0000 ") && !text.contains("0.000000,"), "{text}");
}

#[test]
fn bad_input_exits_with_two() {
    for line in [
        "account --sample-rate 2 --noise-multiplier 1 --steps 10 --delta 1e-5",
        "account --sample-rate nan --noise-multiplier 1 --steps 10 --delta 1e-5",
        "account --sample-rate 0.1 --noise-multiplier 0 --steps 10 --delta 1e-5",
        "account --sample-rate 0.1 --noise-multiplier 1 --steps 10 --delta 0",
        "account --sample-rate 0.1 --noise-multiplier 1 --steps 10 --delta 1e-5 --adjacency both",
        "account --sample-rate 0.1 --noise-multiplier 1 --steps 10 --delta 1e-5 --mechanism geodp",
        "account --sample-rate 0.1 --noise-multiplier 1 --steps 10 --delta 1e-5 --beta 0.1 --dim 3",
        "account --sample-rate 0.1 --noise-multiplier 1 --steps 10 --delta 1e-5 --mechanism geodp --beta 2 --dim 3",
        "account --sample-rate 0.1 --noise-multiplier 1 --steps 10 --delta 1e-5 --mechanism geodp-certified --beta 0.1",
        "account --sample-rate 0.1 --noise-multiplier 1 --steps 10 --delta 1e-5 --mechanism geodp-certified --adjacency replace-one",
        "plan --epsilon -1 --delta 1e-5 --records 100 --batch 10 --steps 10",
        "plan --epsilon 0 --delta 1e-5 --records 100 --batch 10 --steps 10",
        "plan --epsilon 1 --delta 1e-5 --records 100 --batch 1000 --steps 10",
        "plan --epsilon 1 --delta 1e-5 --records 100 --batch 10 --epochs -3",
        "plan --epsilon 1 --delta 1e-5 --records 100 --batch 10",
    ] {
        let output = geodp(line);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{line}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{line}");
    }
}
