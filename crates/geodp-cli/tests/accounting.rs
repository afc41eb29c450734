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
        report["epsilon"]["lower"].as_f64().unwrap(),
        report["epsilon"]["upper"].as_f64().unwrap(),
    );
    assert!(lower <= 1.8284 && 1.8284 <= upper && upper - lower < 0.01 * upper, "{report}");
    assert_eq!(
        (&report["accountant"], &report["adjacency"]),
        (&Value::from("pld"), &Value::from("add-remove"))
    );
    assert_eq!(report["kind"], "certified");

    let renyi = json(&format!("{RUN} --accountant rdp"));
    assert!((renyi["epsilon"]["upper"].as_f64().unwrap() - 2.1014).abs() < 1e-4);
    let replace = json(&format!("{RUN} --adjacency replace-one"));
    assert!(replace["epsilon"]["lower"].as_f64().unwrap() > upper);

    let text = String::from_utf8(geodp(RUN).stdout).unwrap();
    assert!(text.starts_with("certified: epsilon 1.8"), "{text}");
}

#[test]
fn plan_meets_its_target() {
    let line = "plan --epsilon 3 --delta 1e-5 --records 60000 --batch 600";
    let report = json(&format!("{line} --epochs 10"));
    let upper = report["epsilon"]["upper"].as_f64().unwrap();
    assert!((2.997..=3.0).contains(&upper), "{report}");
    assert_eq!(report["steps"], 1000);
    assert_eq!(report, json(&format!("{line} --steps 1000")));
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
    let upper = report["statement"]["conditional"]["epsilon"]["upper"].as_f64().unwrap();
    assert!((2.99..=3.0).contains(&upper), "{report}");
    let ratio = report["noise_multiplier"].as_f64().unwrap() / dp;
    assert!((ratio - std::f64::consts::SQRT_2).abs() < 3e-3, "{ratio}");
}

#[test]
fn geodp_is_never_certified() {
    let geometric = "--mechanism geodp --beta 0.1 --dim 785";
    for line in [RUN, "plan --epsilon 3 --delta 1e-5 --records 60000 --batch 600 --steps 100"] {
        let report = json(&format!("{line} {geometric}"));
        assert!(report.get("epsilon").is_none() && report.get("kind").is_none(), "{report}");
        let statement = &report["statement"];
        assert_eq!(statement["as_published"]["delta_prime_at_most"], 0.9);
        assert!(
            statement["conditional"]["assumption"]
                .as_str()
                .unwrap()
                .contains("nothing enforces it")
        );
        let text = String::from_utf8(geodp(&format!("{line} {geometric}")).stdout).unwrap();
        assert!(text.contains("as published: ") && text.contains("conditional: "), "{text}");
        assert!(text.contains("no certified epsilon") && !text.contains("certified: "), "{text}");
    }
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
