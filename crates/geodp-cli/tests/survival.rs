//! A run survives anything: SIGKILL at random moments, failing writes, damaged files, two processes.
//!
//! The measure is always the same: the final weights are bit for bit those of an undisturbed run,
//! and the ledger has paid for every step; or there is a clear error and nothing is lost.

use crate::common;

use common::{Bench, complaint};
use std::path::Path;
use std::time::Duration;

const STEPS: &str = "3000";

/// The total number of steps that a verified ledger paid for.
fn charged(run: &Path) -> u64 {
    geodp_account::Ledger::read(&run.join("ledger.jsonl")).unwrap().steps()
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// A run that was begun with secure noise and killed, so that copies of it can be continued.
fn begun(bench: &Bench) {
    let more = ["--model", "mlp", "--hidden", "8", "--noise-multiplier", "1", "--steps", STEPS];
    let mut args = bench.train("begun", &more);
    args.extend(["--checkpoint-every", "3"]);
    let mut child = bench.command(&args).spawn().unwrap();
    let metrics = bench.path("begun/metrics.jsonl");
    while !std::fs::metadata(&metrics).is_ok_and(|file| file.len() > 0) {
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!bench.path("begun/statement.json").exists(), "the run was over before it was killed");
}

/// The undisturbed continuation of a copy of `begun`.
fn undisturbed(bench: &Bench) -> Vec<u8> {
    copy_folder(&bench.path("begun"), &bench.path("undisturbed"));
    let output = bench.geodp(&["train", "--resume", "undisturbed", "--threads", "2"]);
    assert!(output.status.success(), "{}", complaint(&output));
    assert_eq!(charged(&bench.path("undisturbed")).to_string(), STEPS);
    std::fs::read(bench.path("undisturbed/model.safetensors")).unwrap()
}

fn assert_finished_like(bench: &Bench, run: &str, expected: &[u8]) {
    let output = bench.geodp(&["train", "--resume", run]);
    let already = complaint(&output).contains("the run is finished");
    assert!(output.status.success() || already, "{}", complaint(&output));
    let model = std::fs::read(bench.path(run).join("model.safetensors")).unwrap();
    assert!(model == expected, "the weights of {run} differ from the undisturbed run's");
    assert_eq!(charged(&bench.path(run)).to_string(), STEPS);
    assert!(!bench.path(run).join("noise.key").exists(), "the key outlived the run");
}

#[test]
fn fifty_kills_change_nothing() {
    let bench = Bench::new();
    begun(&bench);
    let expected = undisturbed(&bench);
    copy_folder(&bench.path("begun"), &bench.path("killed"));
    let (mut kills, mut state) = (0, 11_u64);
    while kills < 50 && !bench.path("killed/statement.json").exists() {
        let mut child =
            bench.command(&["train", "--resume", "killed", "--threads", "1"]).spawn().unwrap();
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_micros(3_000 + (state >> 40) % 13_000));
        child.kill().unwrap();
        // A process that ended by itself before the kill was not killed.
        kills += u32::from(!child.wait().unwrap().success());
        let ledger = geodp_account::Ledger::read(&bench.path("killed/ledger.jsonl")).unwrap();
        assert!(ledger.steps() <= STEPS.parse().unwrap());
    }
    assert!(kills >= 50, "only {kills} kills before the end: make the run longer");
    assert_finished_like(&bench, "killed", &expected);
}

/// Writes that fail at some size, as on a full disk: an error that names the file, nothing lost.
#[cfg(unix)]
#[test]
fn failing_writes_lose_nothing() {
    let bench = Bench::new();
    begun(&bench);
    let expected = undisturbed(&bench);
    copy_folder(&bench.path("begun"), &bench.path("full"));
    let mut failures = 0;
    // Blocks of 512 bytes (1024 in some shells): from “nothing fits” to “almost everything fits”.
    for blocks in [0, 1, 2, 3, 5, 8, 12, 20, 40, 60, 80, 100] {
        let script = format!(
            "trap '' XFSZ; ulimit -f {blocks}; exec {} train --resume full --threads 1",
            env!("CARGO_BIN_EXE_geodp")
        );
        let output = std::process::Command::new("sh")
            .current_dir(bench.folder.path())
            .args(["-c", &script])
            .output()
            .unwrap();
        let message = complaint(&output);
        if !output.status.success() && !message.contains("the run is finished") {
            assert_eq!(output.status.code(), Some(1), "{message}");
            assert!(message.contains("cannot write"), "{message}");
            failures += 1;
        }
    }
    assert!(failures >= 5, "only {failures} writes failed");
    assert_finished_like(&bench, "full", &expected);
}

/// A folder where nothing can be written: a clear error; once it is mended, the run goes on.
#[test]
fn an_unwritable_checkpoint_is_an_error_and_then_recovers() {
    let bench = Bench::new();
    begun(&bench);
    let expected = undisturbed(&bench);
    copy_folder(&bench.path("begun"), &bench.path("blocked"));
    // A folder in the place of the file that would be written: works for root, too.
    let _ = std::fs::remove_file(bench.path("blocked/checkpoint.partial"));
    std::fs::create_dir(bench.path("blocked/checkpoint.partial")).unwrap();
    let output = bench.geodp(&["train", "--resume", "blocked"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(complaint(&output).contains("checkpoint"), "{}", complaint(&output));
    std::fs::remove_dir(bench.path("blocked/checkpoint.partial")).unwrap();
    assert_finished_like(&bench, "blocked", &expected);
}

/// Truncated and bit-flipped files: refused with the file's name, or harmless; never a wrong ε.
#[test]
fn damaged_files_are_refused_or_harmless() {
    let bench = Bench::new();
    begun(&bench);
    let expected = undisturbed(&bench);
    let mut state = 5_u64;
    let mut refused = 0;
    for name in ["run.toml", "ledger.jsonl", "checkpoint", "noise.key", "metrics.jsonl"] {
        for damage in ["flip", "flip", "flip", "cut"] {
            let run = bench.path("damaged");
            let _ = std::fs::remove_dir_all(&run);
            copy_folder(&bench.path("begun"), &run);
            let mut bytes = std::fs::read(run.join(name)).unwrap();
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (state >> 20) as usize % bytes.len();
            if damage == "flip" {
                bytes[at] ^= 1 << ((state >> 50) % 8);
            } else {
                bytes.truncate(at);
            }
            std::fs::write(run.join(name), bytes).unwrap();
            let output = bench.geodp(&["train", "--resume", "damaged"]);
            if output.status.success() {
                let model = std::fs::read(run.join("model.safetensors")).unwrap();
                assert!(model == expected, "{name}, {damage} at {at}: other weights");
                assert_eq!(charged(&run).to_string(), STEPS, "{name}, {damage} at {at}");
            } else {
                assert_eq!(output.status.code(), Some(2), "{name}: {}", complaint(&output));
                refused += 1;
            }
        }
    }
    assert!(refused >= 10, "only {refused} damages were noticed");
}

#[test]
fn a_rewound_checkpoint_and_a_cut_ledger_are_refused() {
    let bench = Bench::new();
    begun(&bench);
    let old = std::fs::read(bench.path("begun/checkpoint")).unwrap();
    let old_ledger = std::fs::read(bench.path("begun/ledger.jsonl")).unwrap();
    // Let it work on for a while, then bring the old checkpoint (or the old ledger) back.
    let mut child =
        bench.command(&["train", "--resume", "begun", "--threads", "1"]).spawn().unwrap();
    let grown = old_ledger.len() as u64 + 2_000;
    while std::fs::metadata(bench.path("begun/ledger.jsonl")).unwrap().len() < grown {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();

    copy_folder(&bench.path("begun"), &bench.path("rewound"));
    std::fs::write(bench.path("rewound/checkpoint"), &old).unwrap();
    let output = bench.geodp(&["train", "--resume", "rewound"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains("rewound"), "{}", complaint(&output));

    copy_folder(&bench.path("begun"), &bench.path("cut"));
    std::fs::write(bench.path("cut/ledger.jsonl"), &old_ledger).unwrap();
    let output = bench.geodp(&["train", "--resume", "cut"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains("ledger line"), "{}", complaint(&output));
}

#[test]
fn changed_data_config_or_key_is_refused() {
    let bench = Bench::new();
    begun(&bench);
    let resume_with = |file: &str, bytes: Vec<u8>| {
        let _ = std::fs::remove_dir_all(bench.path("changed"));
        copy_folder(&bench.path("begun"), &bench.path("changed"));
        std::fs::write(bench.path(file), bytes).unwrap();
        let output = bench.geodp(&["train", "--resume", "changed"]);
        assert_eq!(output.status.code(), Some(2), "{}", complaint(&output));
        complaint(&output)
    };
    let config = std::fs::read_to_string(bench.path("begun/run.toml")).unwrap();
    let other = config.replace("learning_rate = 1.0", "learning_rate = 2.0");
    assert_ne!(config, other);
    assert!(resume_with("changed/run.toml", other.into()).contains("run.toml was changed"));
    assert!(resume_with("changed/noise.key", vec![7; 32]).contains("noise.key"));
    let data = std::fs::read_to_string(bench.path("data.csv")).unwrap();
    let other = data.replacen("red", "blue", 1);
    assert!(resume_with("data.csv", other.into()).contains("fingerprint"));
}

#[test]
fn two_processes_cannot_use_one_folder() {
    let bench = Bench::new();
    begun(&bench);
    let ledger = bench.path("begun/ledger.jsonl");
    let before = std::fs::metadata(&ledger).unwrap().len();
    let mut first =
        bench.command(&["train", "--resume", "begun", "--threads", "1"]).spawn().unwrap();
    // A longer ledger shows that the first process holds the folder.
    while std::fs::metadata(&ledger).unwrap().len() == before {
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = bench.geodp(&["train", "--resume", "begun"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains("in use by another process"), "{}", complaint(&output));
    assert!(first.wait().unwrap().success());
}

/// Steps on all records are fast, and an epoch is one step: the disk is not waited for after each.
#[test]
fn short_epochs_share_their_blocks() {
    let bench = Bench::new();
    let args = ["train", "--data", "data.csv", "--schema", "schema.toml", "--out", "run"];
    let args = [&args[..], &["--batch", "900", "--holdout", "300", "--steps", "640"]].concat();
    let output = bench.geodp(&args);
    assert!(output.status.success(), "{}", complaint(&output));
    assert_eq!(charged(&bench.path("run")), 640);
    let lines = |name: &str| {
        let text = std::fs::read_to_string(bench.path("run").join(name)).unwrap();
        text.lines().count()
    };
    // 32 blocks of 20 steps, and the ledger's first line. A slow machine may write more of the metrics.
    assert_eq!(lines("ledger.jsonl"), 33);
    assert!((32..100).contains(&lines("metrics.jsonl")), "{}", lines("metrics.jsonl"));
}
