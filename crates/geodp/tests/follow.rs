//! A follower sees every step of a run exactly once, whatever happens between its state and the
//! checkpoint, and what it finds stays out of what is released.

use geodp::config::{DataConfig, ModelConfig, RunConfig};
use geodp::plan::Plan;
use geodp::run::{Ended, Run};
use geodp::watch::{Findings, Silent, StepView, Watch};
use geodp::{Error, Statement};
use geodp_report::Section;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Remembers the steps it saw; its `fails_at`-th state cannot be written.
#[derive(Default)]
struct Steps {
    seen: Vec<u64>,
    states: std::cell::Cell<usize>,
    fails_at: Option<usize>,
}

impl Watch for Steps {
    fn on_step(&mut self, view: &StepView<'_>) -> Result<(), Error> {
        self.seen.push(view.step);
        Ok(())
    }

    fn save(&self) -> Result<Option<String>, Error> {
        self.states.set(self.states.get() + 1);
        if self.fails_at == Some(self.states.get()) {
            return Err(Error::Plan("no state".to_owned()));
        }
        Ok(Some(self.seen.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")))
    }

    fn restore(&mut self, state: &str) -> Result<(), Error> {
        let number = |word: &str| word.parse().map_err(|_| Error::Plan("nonsense".to_owned()));
        self.seen = state.split_whitespace().map(number).collect::<Result<_, _>>()?;
        Ok(())
    }

    fn findings(&self, _: &Plan, _: &Statement) -> Result<Option<Findings>, Error> {
        let json = self.save()?.unwrap_or_default();
        Ok(Some(Findings { json, section: Section::new("What was followed") }))
    }
}

fn config(measure: Option<u64>) -> RunConfig {
    let mut config = RunConfig {
        data: DataConfig::Mnist { labels: Some(vec![0, 1]), unit_scaling: true, holdout: None },
        features: None,
        views: None,
        model: ModelConfig::Logistic,
        privacy: Default::default(),
        train: Default::default(),
        ledger: Default::default(),
    };
    config.privacy.noise_multiplier = Some(1.0);
    config.train.steps = Some(7);
    config.train.batch = Some(64);
    config.train.checkpoint_every = Some(2);
    config.train.measure = measure;
    config.complete();
    config
}

fn go_on(run: Run, follower: &mut Steps) -> Result<Ended, Error> {
    run.execute(follower, &mut Silent, &AtomicBool::new(false))
}

fn following(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("following-")).collect()
}

#[test]
fn every_step_is_seen_once_however_often_it_fails() {
    let parent = tempfile::tempdir().unwrap();
    // State 1 is that of the beginning; 2, 3, … come before checkpoints.
    for fails_at in 1..=6 {
        let folder = parent.path().join(fails_at.to_string());
        let mut failing = Steps { fails_at: Some(fails_at), ..Steps::default() };
        assert!(go_on(Run::create(&folder, config(Some(1))).unwrap(), &mut failing).is_err());
        assert!(following(&folder).len() <= 1, "{:?}", following(&folder));
        let mut follower = Steps::default();
        go_on(Run::resume(&folder).unwrap(), &mut follower).unwrap();
        assert_eq!(follower.seen, [0, 1, 2, 3, 4, 5, 6], "failed at {fails_at}");
        let found = std::fs::read_to_string(folder.join("measured.json")).unwrap();
        assert_eq!(found, "0 1 2 3 4 5 6");
        assert_eq!(following(&folder), Vec::<String>::new());
        let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
        assert!(page.contains("What was followed"));
        let statement = std::fs::read_to_string(folder.join("statement.json")).unwrap();
        assert!(!statement.contains("followed") && !statement.contains("measured"));
    }
}

#[test]
fn lost_or_damaged_states_are_refused() {
    let parent = tempfile::tempdir().unwrap();
    for (name, text) in [("lost", None), ("damaged", Some("1 2 x"))] {
        let folder = parent.path().join(name);
        let mut failing = Steps { fails_at: Some(4), ..Steps::default() };
        assert!(go_on(Run::create(&folder, config(Some(1))).unwrap(), &mut failing).is_err());
        let state = folder.join(&following(&folder)[0]);
        match text {
            None => std::fs::remove_file(&state).unwrap(),
            Some(text) => std::fs::write(&state, text).unwrap(),
        }
        let error = go_on(Run::resume(&folder).unwrap(), &mut Steps::default()).unwrap_err();
        assert!(error.to_string().contains("following-4.json"), "{error}");
    }
}

#[test]
fn followers_and_configs_must_agree() {
    let parent = tempfile::tempdir().unwrap();
    let run = Run::create(&parent.path().join("a"), config(Some(1))).unwrap();
    assert!(run.execute(&mut Silent, &mut Silent, &AtomicBool::new(false)).is_err());
    let run = Run::create(&parent.path().join("b"), config(None)).unwrap();
    assert!(go_on(run, &mut Steps::default()).is_err());
    assert!(Run::create(&parent.path().join("c"), config(Some(0))).is_err());
}
