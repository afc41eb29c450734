//! Engines and clipping rules of one's own have everything that this project's have: the same noise,
//! a ledger, checkpoints, resuming, and refusals.

#[path = "../examples/own_clip_rule.rs"]
mod own_clip;
#[path = "../examples/own_engine.rs"]
mod own_engine;

use geodp::engine::Engine;
use geodp::run::{Ended, Finished, Run};
use geodp::trainer::Trainer;
use geodp::watch::{Observer, Progress, Silent, StepView, Watch};
use geodp_account::Ledger;
use geodp_mechanism::{NoiseSource, Spread};
use own_clip::Smooth;
use own_engine::{LeastSquares, params};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn seeded(folder: &Path, resume: bool) -> Result<Run<LeastSquares>, geodp::Error> {
    let engine = LeastSquares::new(2000, 2.0);
    let mut params = params();
    params.train.seed = Some(3);
    let plan = params.check(engine.facts())?;
    if resume {
        Run::resume_with(folder, plan, engine)
    } else {
        Run::create_with(folder, plan, engine)
    }
}

fn finish(run: Run<LeastSquares>) -> Box<Finished> {
    match run.execute(&mut Silent, &mut Silent, &AtomicBool::new(false)).unwrap() {
        Ended::Finished(finished) => finished,
        other => panic!("{other:?}"),
    }
}

struct StopAt<'a>(u64, &'a AtomicBool);

impl Observer for StopAt<'_> {
    fn on_step(&mut self, progress: &Progress) {
        self.1.store(progress.step >= self.0, Ordering::Relaxed);
    }
}

#[test]
fn an_own_engine_has_a_folder_and_resumes_bit_by_bit() {
    let parent = tempfile::tempdir().unwrap();
    let whole = finish(seeded(&parent.path().join("whole"), false).unwrap());
    assert!((whole.weights[0] - 2.0).abs() < 0.5 && (whole.weights[1] + 1.0).abs() < 0.5);

    let folder = parent.path().join("stopped");
    let mut run = seeded(&folder, false).unwrap();
    for at in [30, 150, 151] {
        let stop = AtomicBool::new(false);
        run.execute(&mut Silent, &mut StopAt(at, &stop), &stop).unwrap();
        run = seeded(&folder, true).unwrap();
        assert_eq!(run.steps_done(), at);
    }
    let resumed = finish(run);
    assert_eq!(resumed.weights, whole.weights);
    let ledger = |name: &str| Ledger::read(&parent.path().join(name).join("ledger.jsonl")).unwrap();
    assert_eq!(ledger("stopped").steps(), 400);
    assert_eq!(ledger("stopped").records, ledger("whole").records);
    for file in ["model.safetensors", "statement.json", "report.html", "run.toml"] {
        assert!(folder.join(file).exists(), "{file}");
    }
    assert!(seeded(&folder, true).is_err(), "it is finished");
}

#[test]
fn another_plan_or_engine_does_not_take_a_run_up() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    drop(seeded(&folder, false).unwrap());
    let resume = |engine: LeastSquares, seed, clip| {
        let mut params = params();
        params.train.seed = Some(seed);
        let plan = match clip {
            None => params.check(engine.facts()).unwrap(),
            Some(clip) => {
                params.privacy.clip_norm = None;
                params.check_with_clip(engine.facts(), clip).unwrap()
            }
        };
        Run::resume_with(&folder, plan, engine).err().map(|error| error.to_string())
    };
    assert_eq!(resume(LeastSquares::new(2000, 2.0), 3, None), None);
    let other_plan = resume(LeastSquares::new(2000, 2.0), 4, None).unwrap();
    assert!(other_plan.contains("the plan given is another"), "{other_plan}");
    let other_clip =
        resume(LeastSquares::new(2000, 2.0), 3, Some(Smooth::clip(0.5).unwrap())).unwrap();
    assert!(other_clip.contains("the plan given is another"), "{other_clip}");
    let other_data = resume(LeastSquares::new(2000, 3.0), 3, None).unwrap();
    assert!(other_data.contains("fingerprint differs"), "{other_data}");
    assert!(Run::resume(&folder).is_err(), "no config describes this engine");
    assert!(seeded(&folder, false).is_err(), "the folder is taken");
}

/// Notes how wide the noise of a step is, what a short gradient weighs, and how long the longest
/// contribution is.
#[derive(Default)]
struct Notes {
    std: f64,
    weight_of_tenth: f64,
    longest: f64,
}

impl Watch for Notes {
    fn on_step(&mut self, view: &StepView<'_>) -> Result<(), geodp::Error> {
        match view.spread {
            Some(Spread::Coordinates { std }) => self.std = std,
            other => panic!("{other:?}"),
        }
        self.weight_of_tenth = view.weight_of.weight(0, 0.1);
        for norm in [0.0, 0.1, 1.0, 1e6, f64::INFINITY, f64::NAN] {
            let weight = view.weight_of.weight(0, norm);
            self.longest = self.longest.max(if weight == 0.0 { 0.0 } else { weight * norm });
        }
        Ok(())
    }
}

#[test]
fn an_own_rule_weighs_the_records_and_scales_the_noise() {
    let engine = LeastSquares::new(2000, 2.0);
    let mut params = params();
    params.privacy.epsilon = None;
    params.privacy.noise_multiplier = Some(1.5);
    let both = params.check_with_clip(engine.facts(), Smooth::clip(0.2).unwrap());
    assert!(both.unwrap_err().to_string().contains("give one"));
    params.privacy.clip_norm = None;
    let plan = params.check_with_clip(engine.facts(), Smooth::clip(0.2).unwrap()).unwrap();
    assert_eq!(plan.clip_norm(), Some(0.2));
    let noise = NoiseSource::from_seed(1);
    let mut trainer = Trainer::new(plan, &engine, vec![0.0; 2], noise).unwrap();
    let mut notes = Notes::default();
    trainer.step(&mut notes).unwrap();
    assert!((notes.std - 0.2 * 1.5 / 100.0).abs() < 1e-12, "{}", notes.std);
    let weight = 0.2 / 0.1_f64.hypot(0.2);
    assert!((notes.weight_of_tenth - weight).abs() < 1e-12, "{}", notes.weight_of_tenth);
    assert!(notes.longest <= 0.2 * (1.0 + 1e-12) && notes.longest > 0.199, "{}", notes.longest);
}
