//! Whatever is done to the files of a run, no entry point panics and none states an ε below the ledger's.
//!
//! Thousands of mutations of a finished and of a stopped run: bits, lines, numbers, whole files, files of
//! another run with ten times the noise. `GEODP_TAMPER_CASES` sets how many; a failure prints its number,
//! and numbers that once failed are kept in `CORPUS`.

mod edits;
mod folders;

use folders::{Files, Runs};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Cases beyond the first few hundred that once failed, so that they are tried first. None of the first
/// 10⁵ did (`GEODP_TAMPER_CASES=100000`).
const CORPUS: &[u64] = &[];

fn cases() -> u64 {
    std::env::var("GEODP_TAMPER_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300)
}

#[test]
fn no_mutation_lowers_epsilon_or_panics() {
    let runs = Runs::make();
    let mut opened = 0;
    for case in CORPUS.iter().copied().chain(0..cases()) {
        let mut random = edits::Random::new(case);
        let stopped = random.below(3) == 0;
        let (mut files, other) = if stopped {
            (runs.stopped.clone(), &runs.other_stopped)
        } else {
            (runs.finished.clone(), &runs.other_finished)
        };
        let what = edits::mutate(&mut files, other, &mut random);
        let case = format!("case {case}: {what}");
        let held = catch_unwind(AssertUnwindSafe(|| runs.holds(&files, stopped, &case)));
        opened += u64::from(held.unwrap_or_else(|_| panic!("{case}")));
    }
    // Harmless edits (a comment, a torn line, metrics) leave runs that open: the test is not vacuous.
    assert!(opened > cases() / 50, "only {opened} of {} mutated folders opened", cases());
}

/// Every entry point takes the folder as the run left it, and says the same ε.
#[test]
fn untouched_folders_open() {
    let runs = Runs::make();
    assert!(runs.holds(&runs.finished, false, "finished"));
    assert!(runs.holds(&runs.stopped, true, "stopped"));
}

/// The edits a hurried owner might make, one by one.
#[test]
fn plain_edits_are_refused_with_their_reason() {
    let runs = Runs::make();
    let edit = |name: &str, change: &dyn Fn(String) -> String| {
        let mut files: Files = runs.finished.clone();
        let before = String::from_utf8(files[name].clone()).unwrap();
        let after = change(before.clone());
        assert_ne!(before, after, "{name} is not as this test thinks");
        files.insert(name.to_owned(), after.into_bytes());
        runs.refusal(&files)
    };
    let toml =
        |from: &'static str, to: &'static str| edit("run.toml", &|text| text.replace(from, to));
    assert!(
        toml("noise_multiplier = 0.6", "noise_multiplier = 6.0").contains("run.toml was changed")
    );
    assert!(toml("steps = 8", "steps = 1").contains("run.toml was changed"));
    assert!(toml("batch = 60", "batch = 6").contains("run.toml was changed"));
    let grown = edit("data.csv", &|text| text.clone() + text.lines().last().unwrap_or("") + "\n");
    assert!(grown.contains("fingerprint"), "{grown}");
    let changed = edit("data.csv", &|text| text.replacen("red", "blue", 1));
    assert!(changed.contains("fingerprint"), "{changed}");
    let cut = edit("ledger.jsonl", &|text| {
        let lines: Vec<&str> = text.lines().collect();
        lines[..lines.len() - 1].join("\n") + "\n"
    });
    assert!(cut.contains("ledger line"), "{cut}");
    assert!(edit("ledger.jsonl", &|t| t.replace("0.6", "6.0")).contains("altered"));
    let mut swapped = runs.finished.clone();
    swapped.insert("ledger.jsonl".to_owned(), runs.other_finished["ledger.jsonl"].clone());
    assert!(runs.refusal(&swapped).contains("run.toml was changed"));
    swapped.insert("run.toml".to_owned(), runs.other_finished["run.toml"].clone());
    assert!(runs.refusal(&swapped).contains("another run"));
    let mut model = runs.finished.clone();
    model.insert("model.safetensors".to_owned(), runs.other_finished["model.safetensors"].clone());
    assert!(runs.model_refusal(&model).contains("does not hold the weights"));
}
