//! Run folders as maps from names to bytes, and what must hold of them on the disk.

use geodp::config::{ConfigFile, DataConfig, ModelConfig, RunConfig};
use geodp::run::{Ended, Review, Run};
use geodp::trained::Trained;
use geodp::watch::{Observer, Progress, Silent};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The files of a run folder, and `data.csv` beside it.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Two runs of one plan and two with ten times the noise, each finished and stopped half-way.
pub(crate) struct Runs {
    place: tempfile::TempDir,
    pub(crate) finished: Files,
    pub(crate) stopped: Files,
    pub(crate) other_finished: Files,
    pub(crate) other_stopped: Files,
    /// ε of the whole run, and of what the stopped one was charged.
    least: (f64, f64),
}

struct StopAfter<'a>(u64, &'a AtomicBool);

impl Observer for StopAfter<'_> {
    fn on_step(&mut self, progress: &Progress) {
        self.1.store(progress.step >= self.0, Ordering::Relaxed);
    }
}

fn table() -> String {
    let rows = (0..80).map(|at| {
        let (a, color) = (f64::from(at % 17) / 17.0, ["red", "blue"][at as usize % 2]);
        format!("{a:.3},{color},{}\n", if a > 0.5 { "yes" } else { "no" })
    });
    "a,color,label\n".to_owned() + &rows.collect::<String>()
}

const SCHEMA: &str = "scale = \"symmetric\"\n[label]\ncolumn = \"label\"\nclasses = [\"no\", \"yes\"]\n\
    [[feature]]\ncolumn = \"a\"\nrange = [0, 1]\n\
    [[feature]]\ncolumn = \"color\"\nvalues = [\"red\", \"blue\"]\n";

fn config(place: &Path, noise_multiplier: f64) -> RunConfig {
    let mut config = RunConfig::from(ConfigFile {
        data: Some(DataConfig::Table {
            train: place.join("data.csv"),
            test: None,
            schema: place.join("schema.toml"),
            holdout: Some(20),
            test_is: None,
        }),
        model: Some(ModelConfig::Logistic),
        ..ConfigFile::default()
    });
    config.privacy.noise_multiplier = Some(noise_multiplier);
    // Every record in every step: a Gaussian, whose ε costs microseconds.
    config.train.batch = Some(60);
    config.train.steps = Some(8);
    config.train.checkpoint_every = Some(2);
    config.train.learning_rate = Some(0.5);
    config.complete();
    config
}

fn train(run: Run, stop_after: u64) {
    let stop = AtomicBool::new(false);
    run.execute(&mut Silent, &mut StopAfter(stop_after, &stop), &stop).unwrap();
}

impl Runs {
    pub(crate) fn make() -> Self {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("data.csv"), table()).unwrap();
        std::fs::write(place.path().join("schema.toml"), SCHEMA).unwrap();
        let make = |name: &str, sigma: f64, stop_after: u64| {
            let folder = place.path().join(name);
            train(Run::create(&folder, config(place.path(), sigma)).unwrap(), stop_after);
            let least = Review::open(&folder).unwrap().statement.claims[0].epsilon().lower;
            let mut files = read(&folder);
            files.insert("data.csv".to_owned(), table().into_bytes());
            (files, least)
        };
        let (finished, whole) = make("finished", 0.6, u64::MAX);
        let (stopped, half) = make("stopped", 0.6, 3);
        let (other_finished, _) = make("other", 6.0, u64::MAX);
        let (other_stopped, _) = make("other-stopped", 6.0, 3);
        Self { place, finished, stopped, other_finished, other_stopped, least: (whole, half) }
    }

    /// Writes the files; the folder.
    fn lay_out(&self, files: &Files) -> PathBuf {
        let folder = self.place.path().join("mutated");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        for (name, bytes) in files {
            let place = if name == "data.csv" { self.place.path() } else { &folder };
            std::fs::write(place.join(name), bytes).unwrap();
        }
        if !files.contains_key("data.csv") {
            let _ = std::fs::remove_file(self.place.path().join("data.csv"));
        }
        folder
    }

    /// Asserts that no entry point states less than was charged; whether any opened.
    pub(crate) fn holds(&self, files: &Files, stopped: bool, case: &str) -> bool {
        let least = if stopped { self.least.1 } else { self.least.0 };
        let folder = self.lay_out(files);
        let mut opened = false;
        if let Ok(review) = Review::open(&folder) {
            assert!(review.statement.claims[0].upper() >= least, "{case}: report");
            opened = true;
        }
        if let Ok(trained) = Trained::open(&folder)
            && let Some(claims) = trained.claims()
        {
            assert!(claims[0].upper() >= least, "{case}: evaluate");
            opened = true;
        }
        if let Ok(run) = Run::resume(&folder)
            && let Ok(Ended::Finished(finished)) =
                run.execute(&mut Silent, &mut Silent, &AtomicBool::new(false))
        {
            assert!(finished.statement.claims[0].upper() >= self.least.0, "{case}: resumed");
            opened = true;
        }
        opened
    }

    /// Why a report of these files is refused.
    pub(crate) fn refusal(&self, files: &Files) -> String {
        Review::open(&self.lay_out(files)).err().expect("it should be refused").to_string()
    }

    /// Why the model among these files is refused.
    pub(crate) fn model_refusal(&self, files: &Files) -> String {
        Trained::open(&self.lay_out(files)).err().expect("it should be refused").to_string()
    }
}

fn read(folder: &Path) -> Files {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    entries.map(|path| (name(&path), std::fs::read(&path).unwrap())).collect()
}
