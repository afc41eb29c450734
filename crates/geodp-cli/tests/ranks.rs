//! Real processes, started by `mpirun`: the bits of one, any number of ranks, killed and resumed.
//!
//! `cargo test --workspace --features geodp-cli/mpi --test ranks`; more kills with GEODP_KILLS=50.
#![cfg(all(feature = "mpi", target_os = "linux"))]

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const GEODP: &str = env!("CARGO_BIN_EXE_geodp");
const TRAINING: &[&str] = &["--noise-multiplier", "1", "--batch", "512", "--seed", "5"];

/// `geodp` with these arguments as `ranks` processes that share the cores.
fn started(ranks: usize, arguments: &[&str]) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-n"]);
    command.arg(ranks.to_string()).arg(GEODP).args(arguments).args(["--threads", "1"]);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.stdin(Stdio::null());
    command
}

fn train(ranks: usize, folder: &Path, model: &[&str]) -> Output {
    let out = ["train", "--out", folder.to_str().unwrap()];
    started(ranks, &[&out, TRAINING, model].concat()).output().unwrap()
}

fn files(folder: &Path) -> [Vec<u8>; 2] {
    ["model.safetensors", "statement.json"].map(|name| std::fs::read(folder.join(name)).unwrap())
}

/// The lines of a file of JSON; the last may have been cut by a kill.
fn lines(file: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// A ledger without what is drawn by chance, the run's name, and the hashes that hold it.
fn charges(folder: &Path) -> Vec<serde_json::Value> {
    let mut all = lines(&folder.join("ledger.jsonl"));
    for line in &mut all {
        let fields = line.as_object_mut().unwrap();
        fields.retain(|name, _| !["previous", "hash"].contains(&name.as_str()));
        if let Some(run) = fields.get_mut("run").and_then(|run| run.as_object_mut()) {
            run.remove("id");
        }
    }
    all
}

/// Steps that the ledger charged, and steps whose weights someone may have seen.
fn charged_and_made(folder: &Path) -> (u64, u64) {
    let charged =
        lines(&folder.join("ledger.jsonl")).iter().filter_map(|l| l["count"].as_u64()).sum();
    let made = lines(&folder.join("metrics.jsonl")).iter().filter_map(|l| l["step"].as_u64()).max();
    (charged, made.unwrap_or(0))
}

/// The processes of `geodp` that work on `folder`.
fn processes(folder: &Path) -> Vec<u32> {
    let known = |entry: std::fs::DirEntry| {
        let id = entry.file_name().to_str()?.parse::<u32>().ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        let is_geodp = words.first() == Some(&GEODP.as_bytes());
        (is_geodp && words.contains(&folder.as_os_str().as_encoded_bytes())).then_some(id)
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(known).collect()
}

#[test]
fn ranks_have_the_bits_of_one_process() {
    let cnn = ["--model", "cnn", "--steps", "6"];
    let strategies = ["--model", "logistic", "--steps", "12", "--importance", "--select", "sur"];
    let polar = ["--model", "logistic", "--steps", "12", "--mechanism", "geodp-certified"];
    for model in [&cnn[..], &strategies[..], &polar[..]] {
        let folder = tempfile::tempdir().unwrap();
        let one = folder.path().join("one");
        let arguments = [&["train", "--out", one.to_str().unwrap()], TRAINING, model].concat();
        assert!(Command::new(GEODP).args(arguments).output().unwrap().status.success());
        for ranks in [1, 2, 3] {
            let path = folder.path().join(ranks.to_string());
            let output = train(ranks, &path, model);
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{ranks} ranks: {told}");
            assert!(files(&path) == files(&one), "{model:?}: {ranks} ranks gave other bits");
            assert_eq!(charges(&path), charges(&one), "{model:?}: {ranks} ranks");
        }
    }
}

/// A rank that is killed ends the job; any number of ranks resumes it to the same end, and the ledger never
/// has fewer steps than were made.
#[test]
fn killed_ranks_are_resumed_to_the_same_end() {
    let kills = std::env::var("GEODP_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(3_usize);
    let model = ["--model", "logistic", "--steps", "400", "--checkpoint-every", "20"];
    let folder = tempfile::tempdir().unwrap();
    let one = folder.path().join("one");
    assert!(train(1, &one, &model).status.success());
    let mut chance = geodp_mechanism::noise::NoiseSource::from_seed(1)
        .stream(geodp_mechanism::Purpose::Sampling, 0, 0)
        .unwrap();
    let mut below = move |end: usize| (chance.word() % end as u64) as usize;
    let (mut killed, mut runs) = (0, 0);
    while killed < kills {
        runs += 1;
        let path = folder.path().join(format!("run{runs}"));
        let out = ["train", "--out", path.to_str().unwrap()];
        let mut job = started(1 + below(4), &[&out, TRAINING, &model].concat());
        while !path.join("statement.json").exists() {
            let mut child = job.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let moment = Duration::from_millis(300 + below(2500) as u64);
            let began = Instant::now();
            while began.elapsed() < moment && child.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_millis(10));
            }
            let ranks = processes(&path);
            if killed < kills && !ranks.is_empty() {
                let chosen = ranks[below(ranks.len())].to_string();
                Command::new("kill").args(["-9", &chosen]).status().unwrap();
                killed += 1;
            }
            child.wait().unwrap();
            let (charged, made) = charged_and_made(&path);
            assert!(charged >= made, "{charged} steps are charged, {made} were made");
            let resume = ["train", "--resume", path.to_str().unwrap()];
            job = match path.join("run.toml").exists() {
                true => started(1 + below(4), &resume),
                false => started(2, &[&out, TRAINING, &model].concat()),
            };
        }
        assert!(files(&path) == files(&one), "run {runs} ended elsewhere");
        assert_eq!(charged_and_made(&path), (400, 400), "run {runs}");
    }
}

#[test]
fn only_a_training_runs_in_several_processes() {
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "-n", "2", GEODP, "lab", "list"]);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let output = command.output().unwrap();
    assert!(!output.status.success());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("only train runs in several processes"), "{told}");
}
