//! One training in several processes has the bits of one: the same weights, ledger and statement.
//!
//! The processes are threads here, linked by channels; geodp-mpi links real ones.

use geodp::config::{DataConfig, ModelConfig, PairFiles, RunConfig};
use geodp::importance::ImportanceParams;
use geodp::params::{ClipKind, Mechanism};
use geodp::run::{Ended, Run};
use geodp::select::SelectParams;
use geodp::team::{Leader, Link, LinkError, serve};
use geodp::watch::{Observer, Progress, Silent};
use geodp_account::Arithmetic;
use geodp_data::{FeatureSpec, ViewSpec};
use geodp_mechanism::PolarSettings;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// A thread's end of the channels to all others.
struct Threads {
    rank: usize,
    to: Vec<Mutex<Sender<Vec<u8>>>>,
    from: Vec<Mutex<Receiver<Vec<u8>>>>,
}

/// The ends of `size` threads.
fn threads(size: usize) -> Vec<Threads> {
    let mut ends: Vec<Threads> =
        (0..size).map(|rank| Threads { rank, to: Vec::new(), from: Vec::new() }).collect();
    for from in 0..size {
        for end in 0..size {
            let (sender, receiver) = channel();
            ends[from].to.push(Mutex::new(sender));
            ends[end].from.push(Mutex::new(receiver));
        }
    }
    ends
}

impl Link for Threads {
    fn rank(&self) -> usize {
        self.rank
    }
    fn size(&self) -> usize {
        self.to.len()
    }
    fn send(&self, to: usize, bytes: &[u8]) -> Result<(), LinkError> {
        let sent = self.to[to].lock().unwrap().send(bytes.to_vec());
        sent.map_err(|_| LinkError(format!("thread {to} is gone")))
    }
    fn receive(&self, from: usize) -> Result<Vec<u8>, LinkError> {
        let received = self.from[from].lock().unwrap().recv();
        received.map_err(|_| LinkError(format!("thread {from} is gone")))
    }
    fn broadcast(&self, values: &mut [f32]) -> Result<(), LinkError> {
        if self.rank == 0 {
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            return (1..self.size()).try_for_each(|rank| self.send(rank, &bytes));
        }
        let bytes = self.receive(0)?;
        for (value, bytes) in values.iter_mut().zip(bytes.as_chunks().0) {
            *value = f32::from_le_bytes(*bytes);
        }
        Ok(())
    }
    fn sum_to_first(&self, values: &mut [i64]) -> Result<(), LinkError> {
        if self.rank > 0 {
            return self.send(0, &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>());
        }
        // From the last to the first: the order of integers does not matter.
        for rank in (1..self.size()).rev() {
            let bytes = self.receive(rank)?;
            for (value, bytes) in values.iter_mut().zip(bytes.as_chunks().0) {
                *value += i64::from_le_bytes(*bytes);
            }
        }
        Ok(())
    }
}

/// Stops a run after so many steps of this call.
struct StopAt<'a>(u64, &'a AtomicBool);

impl Observer for StopAt<'_> {
    fn on_step(&mut self, progress: &Progress) {
        if progress.step >= self.0 {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

/// Begins or resumes the run in `folder` with `size` threads, up to step `until`.
fn train(
    size: usize,
    folder: &Path,
    config: Option<&RunConfig>,
    until: u64,
) -> Result<Ended, String> {
    let mut ends = threads(size);
    let workers: Vec<_> = ends
        .drain(1..)
        .map(|link| std::thread::spawn(move || serve(&link).map_err(|error| error.to_string())))
        .collect();
    let leader = Leader::new(Arc::new(ends.remove(0)));
    let progress = |_, _| ();
    let run = match config {
        Some(config) => Run::create_among(Some(leader), folder, config.clone(), &progress),
        None => Run::resume_among(Some(leader), folder, &progress),
    };
    let stop = AtomicBool::new(false);
    let ended = run.and_then(|run| run.execute(&mut Silent, &mut StopAt(until, &stop), &stop));
    for worker in workers {
        worker.join().unwrap().unwrap();
    }
    ended.map_err(|error| error.to_string())
}

fn config(change: fn(&mut RunConfig)) -> RunConfig {
    let mut config = RunConfig::mnist();
    config.data =
        DataConfig::Mnist { labels: Some(vec![0, 1]), unit_scaling: false, holdout: None };
    config.model = ModelConfig::Logistic;
    config.features = None;
    config.privacy.epsilon = None;
    config.privacy.noise_multiplier = Some(1.0);
    (config.train.batch, config.train.steps, config.train.epochs) = (Some(96), Some(6), None);
    (config.train.seed, config.train.checkpoint_every) = (Some(3), Some(2));
    change(&mut config);
    config
}

fn files(folder: &Path) -> [Vec<u8>; 2] {
    ["model.safetensors", "statement.json"].map(|name| std::fs::read(folder.join(name)).unwrap())
}

/// Mechanisms, strategies, units and features: any number of processes, the bits of one.
#[test]
fn any_number_of_processes_has_the_bits_of_one() {
    type Route = (&'static str, fn(&mut RunConfig));
    let routes: [Route; 7] = [
        ("dp", |_| ()),
        ("geodp", |c| c.privacy.mechanism = Mechanism::Geodp { beta: 0.1 }),
        ("certified", |c| {
            c.privacy.mechanism = Mechanism::GeodpCertified(PolarSettings::default());
            c.privacy.clip = ClipKind::Psac;
        }),
        ("importance", |c| c.privacy.importance = Some(ImportanceParams::default())),
        ("select", |c| c.privacy.select = Some(SelectParams { batch: 64, ..Default::default() })),
        ("views", |c| c.views = Some(ViewSpec { flip: true, shift: 1, each_step: Some(2) })),
        ("features", |c| {
            c.data = DataConfig::Mnist {
                labels: Some(vec![0, 1]),
                unit_scaling: false,
                holdout: Some(12_000),
            };
            c.features = Some(FeatureSpec::scattering());
        }),
    ];
    for (name, change) in routes {
        let (folder, config) = (tempfile::tempdir().unwrap(), config(change));
        let one = folder.path().join("one");
        geodp::train(config.clone(), &one).unwrap();
        for size in [1, 2, 3] {
            let path = folder.path().join(size.to_string());
            let ended = train(size, &path, Some(&config), u64::MAX).unwrap();
            assert!(matches!(ended, Ended::Finished(_)));
            let same = [0, 1].map(|at| files(&path)[at] == files(&one)[at]);
            assert_eq!(same, [true; 2], "{name}, {size} processes: weights, statement");
        }
    }
}

/// Stopped in the middle and resumed by another number of processes: the same end.
#[test]
fn a_run_is_resumed_by_any_number_of_processes() {
    let (folder, config) = (tempfile::tempdir().unwrap(), config(|_| ()));
    let (one, several) = (folder.path().join("one"), folder.path().join("several"));
    geodp::train(config.clone(), &one).unwrap();
    assert!(matches!(train(3, &several, Some(&config), 2), Ok(Ended::Interrupted { .. })));
    assert!(matches!(train(2, &several, None, 4), Ok(Ended::Interrupted { .. })));
    assert!(matches!(train(1, &several, None, u64::MAX), Ok(Ended::Finished(_))));
    assert!(files(&several) == files(&one));
}

/// What several processes cannot do with the bits of one is refused before anything is made.
#[test]
fn what_depends_on_the_order_is_refused_with_the_reason() {
    type Case = (fn(&mut RunConfig), &'static str);
    let cases: [Case; 3] = [
        (|c| c.privacy.arithmetic = Some(Arithmetic::FloatingPoint), "floating point"),
        (
            |c| {
                c.privacy = Default::default();
                c.privacy.mechanism = Mechanism::None;
            },
            "without privacy",
        ),
        (|c| c.train.measure = Some(10), "measure in one process"),
    ];
    for (change, word) in cases {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let error = train(2, &path, Some(&config(change)), u64::MAX).unwrap_err();
        assert!(error.contains(word), "{error}");
        assert!(!path.exists());
    }
}

/// A process whose link hands it another config loads other data: refused before any step.
struct Meddling(Threads);

impl Link for Meddling {
    fn rank(&self) -> usize {
        self.0.rank()
    }
    fn size(&self) -> usize {
        self.0.size()
    }
    fn send(&self, to: usize, bytes: &[u8]) -> Result<(), LinkError> {
        self.0.send(to, bytes)
    }
    fn receive(&self, from: usize) -> Result<Vec<u8>, LinkError> {
        let mut bytes = self.0.receive(from)?;
        let (told, other) =
            (&b"labels = [\n    0,\n    1,\n]"[..], &b"labels = [\n    0,\n    2,\n]"[..]);
        if let Some(at) = bytes.windows(told.len()).position(|window| window == told) {
            bytes[at..at + told.len()].copy_from_slice(other);
        }
        Ok(bytes)
    }
    fn broadcast(&self, values: &mut [f32]) -> Result<(), LinkError> {
        self.0.broadcast(values)
    }
    fn sum_to_first(&self, values: &mut [i64]) -> Result<(), LinkError> {
        self.0.sum_to_first(values)
    }
}

#[test]
fn other_data_in_another_process_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut ends = threads(2);
    let link = Meddling(ends.pop().unwrap());
    let worker = std::thread::spawn(move || serve(&link));
    let leader = Leader::new(Arc::new(ends.remove(0)));
    let made = Run::create_among(Some(leader), &path, config(|_| ()), &|_, _| ());
    let error = made.err().unwrap().to_string();
    worker.join().unwrap().unwrap();
    assert!(error.contains("process 1: it has other training data"), "{error}");
    assert!(!path.exists());
}

/// Patients with up to seven rows each, of which a step uses three: a patient's rows stay together, and
/// which of them are used does not depend on who holds them. Settings that a table leaves to its size are
/// those of the whole.
#[test]
fn a_table_with_units_has_the_bits_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut csv = "patient,a,b,ill\n".to_owned();
    for row in 0..7 {
        for patient in (0..60).filter(|patient| row <= patient % 7) {
            let (a, b) = ((patient * 7 + row) % 11, (patient * 3 + row * 5) % 13);
            let ill = if a > 5 { "yes" } else { "no" };
            csv += &format!("p{patient},0.{a:02},0.{b:02},{ill}\n");
        }
    }
    let (table, schema) = (folder.path().join("t.csv"), folder.path().join("s.toml"));
    std::fs::write(&table, csv).unwrap();
    let text = "[label]\ncolumn = \"ill\"\nclasses = [\"no\", \"yes\"]\n[unit]\ncolumn = \"patient\"\n\
        most_rows = 3\n[[feature]]\ncolumn = \"a\"\nrange = [0, 1]\n[[feature]]\ncolumn = \"b\"\nrange = [0, 1]\n";
    std::fs::write(&schema, text).unwrap();
    let mut config = RunConfig::table(table, schema).model(ModelConfig::Logistic);
    config.train.seed = Some(3);
    let one = folder.path().join("one");
    geodp::train(config.clone(), &one).unwrap();
    for size in [2, 3] {
        let path = folder.path().join(size.to_string());
        train(size, &path, Some(&config), u64::MAX).unwrap();
        assert!(files(&path) == files(&one), "{size} processes gave other bits");
    }
}

/// Every process reads its share of a table or of arrays alone. What reading did to all records is
/// reported, the data is known by what one process calls it, and shares may be empty.
#[test]
fn shares_are_read_and_reported_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut csv = "a,b,y\n".to_owned();
    for row in 0..90 {
        let b = if row % 9 == 0 { String::new() } else { (row % 7).to_string() };
        csv += &format!("{},{b},{}\n", row % 13, ["no", "yes"][row % 2]);
    }
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let schema = "[label]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\"]\n[[feature]]\ncolumn = \"a\"\n\
        range = [2, 10]\n[[feature]]\ncolumn = \"b\"\nrange = [0, 7]\nmissing = \"skip\"\n";
    let table =
        RunConfig::table(write("t.csv", csv.as_bytes()), write("s.toml", schema.as_bytes()));
    let idx = |head: &[u8], values: usize| {
        [head.to_vec(), (0..values).map(|at| (at * 31 % 256) as u8).collect()].concat()
    };
    let inputs = write("x-idx2-ubyte", &idx(&[0, 0, 8, 2, 0, 0, 0, 40, 0, 0, 0, 3], 120));
    let labels = [&[0, 0, 8, 1, 0, 0, 0, 40][..], &[0, 1].repeat(20)].concat();
    let labels = write("y-idx1-ubyte", &labels);
    let mut arrays = table.clone();
    arrays.data = DataConfig::Arrays(PairFiles {
        train_inputs: inputs,
        train_labels: labels,
        test_inputs: None,
        test_labels: None,
        classes: 2,
        holdout: Some(4),
        test_is: None,
    });
    for (name, mut config) in [("table", table), ("arrays", arrays)] {
        config.model = ModelConfig::Logistic;
        (config.train.seed, config.train.steps, config.train.batch) = (Some(3), Some(3), Some(16));
        let path = |size: usize| folder.path().join(format!("{name}{size}"));
        geodp::train(config.clone(), path(0)).unwrap();
        let header = |size: usize| {
            let ledger = std::fs::read_to_string(path(size).join("ledger.jsonl")).unwrap();
            let first: serde_json::Value =
                serde_json::from_str(ledger.lines().next().unwrap()).unwrap();
            (first["run"]["data"].clone(), first["run"]["records"].clone())
        };
        let plain = Run::create(&path(1), config.clone()).unwrap();
        for size in [2, 3, 60] {
            let mut ends = threads(size);
            let workers: Vec<_> =
                ends.drain(1..).map(|link| std::thread::spawn(move || serve(&link))).collect();
            let leader = Leader::new(Arc::new(ends.remove(0)));
            let run =
                Run::create_among(Some(leader), &path(size), config.clone(), &|_, _| ()).unwrap();
            assert_eq!(run.imported(), plain.imported(), "{size} processes");
            run.execute(&mut Silent, &mut Silent, &AtomicBool::new(false)).unwrap();
            workers.into_iter().for_each(|worker| worker.join().unwrap().unwrap());
            assert!(files(&path(size)) == files(&path(0)), "{name}: {size} processes");
            assert_eq!(header(size), header(0));
        }
    }
}
