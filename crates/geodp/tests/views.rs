//! Views and features of images in a whole run: from config to folder, stopped and resumed, measured and asked.

use geodp::ModelFile;
use geodp::config::{ConfigFile, DataConfig, ModelConfig, PairFiles, RunConfig};
use geodp::run::{Ended, Run};
use geodp::trained::Trained;
use geodp::watch::{Observer, Progress, Silent};
use geodp_data::{FeatureSpec, Storage, ViewSpec};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const SIDE: usize = 8;
const RECORDS: usize = 90;

/// Images with a bright left or right half: a mirrored view has the other class's look, so only a model
/// that is asked about both views sees both.
fn write_images(folder: &Path) -> PairFiles {
    let header = |dims: &[u32]| {
        let mut bytes = vec![0, 0, 8, dims.len() as u8];
        dims.iter().for_each(|dim| bytes.extend(dim.to_be_bytes()));
        bytes
    };
    let mut images = header(&[RECORDS as u32, SIDE as u32, SIDE as u32]);
    let mut labels = header(&[RECORDS as u32]);
    for record in 0..RECORDS {
        let label = record % 3;
        labels.push(label as u8);
        for at in 0..SIDE * SIDE {
            let (y, x) = (at / SIDE, at % SIDE);
            let bright = match label {
                0 => x < SIDE / 2,
                1 => y < SIDE / 2,
                _ => (x + y) % 2 == 0,
            };
            images.push(if bright { 200 } else { 20 } + ((record * 31 + at * 7) % 40) as u8);
        }
    }
    let (inputs, targets) = (folder.join("images"), folder.join("labels"));
    std::fs::write(&inputs, images).unwrap();
    std::fs::write(&targets, labels).unwrap();
    PairFiles {
        train_inputs: inputs,
        train_labels: targets,
        test_inputs: None,
        test_labels: None,
        classes: 3,
        holdout: Some(30),
        test_is: None,
    }
}

fn config(folder: &Path, features: Option<FeatureSpec>, views: Option<ViewSpec>) -> RunConfig {
    let mut config = RunConfig::from(ConfigFile {
        data: Some(DataConfig::Arrays(write_images(folder))),
        features,
        views,
        model: Some(ModelConfig::Logistic),
        ..ConfigFile::default()
    });
    config.privacy.noise_multiplier = Some(0.6);
    config.privacy.clip_norm = Some(0.5);
    config.train.batch = Some(20);
    config.train.steps = Some(12);
    config.train.checkpoint_every = Some(5);
    config.train.learning_rate = Some(1.0);
    config.train.seed = Some(3);
    config
}

struct StopAt<'a>(u64, &'a AtomicBool);

impl Observer for StopAt<'_> {
    fn on_step(&mut self, progress: &Progress) {
        self.1.store(progress.step >= self.0, Ordering::Relaxed);
    }
}

fn views() -> ViewSpec {
    ViewSpec { flip: true, shift: 1, each_step: Some(2) }
}

fn finish(run: Run) -> Vec<f32> {
    match run.execute(&mut Silent, &mut Silent, &AtomicBool::new(false)).unwrap() {
        Ended::Finished(finished) => finished.weights,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_with_views_is_a_run_of_its_records() {
    for features in [None, Some(FeatureSpec::scattering())] {
        let parent = tempfile::tempdir().unwrap();
        let config = config(parent.path(), features.clone(), Some(views()));
        let whole = parent.path().join("whole");
        let run = Run::create(&whole, config.clone()).unwrap();
        // Ten views are one record: N and B count records, and so does the ε.
        assert_eq!((run.plan().facts().records, run.split().train.len()), (60, 60));
        let weights = finish(run);

        let folder = parent.path().join("stopped");
        let stop = AtomicBool::new(false);
        let run = Run::create(&folder, config).unwrap();
        run.execute(&mut Silent, &mut StopAt(7, &stop), &stop).unwrap();
        let resumed = finish(Run::resume(&folder).unwrap());
        assert!(weights == resumed, "a resumed run chooses the same views: the same bits");

        let trained = Trained::open(&whole).unwrap();
        let (split, _) = trained.own_records().unwrap();
        let found = trained.evaluate(&split.test).unwrap();
        let metrics = std::fs::read_to_string(whole.join("metrics.jsonl")).unwrap();
        let last: serde_json::Value =
            serde_json::from_str(metrics.lines().last().unwrap()).unwrap();
        assert_eq!(found.count, 30);
        assert_eq!(Some(found.accuracy()), last["test"]["accuracy"].as_f64());
        assert!((found.mean_loss - last["test"]["loss"].as_f64().unwrap()).abs() < 1e-6);
        assert!(found.accuracy() > 0.5, "{}", found.accuracy());
        // A prediction is the mean over all views: mirroring an image does not change it.
        let rows = trained.predict(split.test.records()).unwrap().rows;
        let sum: f32 = rows[0].probabilities.iter().sum();
        assert!(rows.len() == 30 && (sum - 1.0).abs() < 1e-5);
    }
}

#[test]
fn views_change_what_is_learnt_and_need_images() {
    let parent = tempfile::tempdir().unwrap();
    let train = |name: &str, views: Option<ViewSpec>| {
        let config = config(parent.path(), None, views);
        finish(Run::create(&parent.path().join(name), config).unwrap())
    };
    assert!(train("plain", None) != train("views", Some(views())));
    let mut config = config(parent.path(), None, Some(views()));
    config.views = Some(ViewSpec { flip: false, shift: 0, each_step: Some(2) });
    let error = Run::create(&parent.path().join("none"), config).err().unwrap().to_string();
    assert!(error.contains("views.each_step is 2"), "{error}");
}

/// A run keeps the storage it was made with: halves are named in its files, floats are what its files mean by naming
/// none, as versions wrote them that had no other default. Either is known again by its config's hash.
#[test]
fn a_run_of_either_storage_is_resumed_and_opened_as_it_was() {
    for (storage, line) in [(Storage::Half, "\nstorage = \"half\"\n"), (Storage::Single, "")] {
        let parent = tempfile::tempdir().unwrap();
        let features = FeatureSpec::scattering_as(storage);
        let config = config(parent.path(), Some(features.clone()), None);
        let whole = finish(Run::create(&parent.path().join("whole"), config.clone()).unwrap());

        let (folder, stop) = (parent.path().join("stopped"), AtomicBool::new(false));
        let run = Run::create(&folder, config).unwrap();
        run.execute(&mut Silent, &mut StopAt(7, &stop), &stop).unwrap();
        let text = std::fs::read_to_string(folder.join("run.toml")).unwrap();
        assert_eq!(text.contains("storage"), !line.is_empty());
        assert!(text.contains(line), "{text}");
        assert!(whole == finish(Run::resume(&folder).unwrap()), "{storage:?}: the same bits");

        let trained = Trained::open(&folder).unwrap();
        assert_eq!(trained.config().features.as_ref(), Some(&features));
        let test = trained.own_records().unwrap().0.test;
        let metrics = std::fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
        let last: serde_json::Value =
            serde_json::from_str(metrics.lines().last().unwrap()).unwrap();
        let found = trained.evaluate(&test).unwrap();
        assert_eq!(Some(found.mean_loss), last["test"]["loss"].as_f64());

        // The model file alone says it, too.
        let alone = parent.path().join("alone");
        std::fs::create_dir(&alone).unwrap();
        std::fs::copy(folder.join("model.safetensors"), alone.join("model.safetensors")).unwrap();
        let (model, _) = ModelFile::read(&alone.join("model.safetensors")).unwrap();
        assert_eq!(model.features, Some(features));
    }
}
