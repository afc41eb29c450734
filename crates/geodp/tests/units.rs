//! Units of several rows through the trainer: N counts units, a unit's mean gradient is what is clipped,
//! B is the only denominator, and every private route takes them.
//!
//! Each of these faults makes a test here fail: clipping rows instead of units, dividing by the rows of
//! the batch, rows that do not follow the step's choice, steps that all use the same rows.

use geodp::config::RunConfig;
use geodp::engine::{Engine, NetworkEngine, RowChoice};
use geodp::importance::ImportanceParams;
use geodp::params::{Mechanism, PlanParams};
use geodp::run::{Ended, Run};
use geodp::sampler::Sampling;
use geodp::select::SelectParams;
use geodp::trainer::Trainer;
use geodp::watch::{Silent, StepView, Watch};
use geodp_account::Arithmetic;
use geodp_data::Units;
use geodp_mechanism::{NoiseSource, PolarSettings};
use geodp_nn::{Network, NetworkSpec, Samples, SplitMix64};
use std::sync::atomic::AtomicBool;

const FEATURES: usize = 5;
const CLASSES: u32 = 3;

#[derive(Clone)]
struct Rows {
    inputs: Vec<Vec<f32>>,
    labels: Vec<u32>,
}

impl Rows {
    fn random(rows: usize, seed: u64) -> Self {
        let mut generator = SplitMix64::new(seed);
        let mut value = || generator.below(2001) as f32 / 500.0 - 2.0;
        let inputs = (0..rows).map(|_| (0..FEATURES).map(|_| value()).collect()).collect();
        let labels = (0..rows as u32).map(|row| row * 7 % CLASSES).collect();
        Self { inputs, labels }
    }
}

impl Samples for Rows {
    fn len(&self) -> usize {
        self.labels.len()
    }
    fn input_len(&self) -> usize {
        FEATURES
    }
    fn read_input(&self, index: usize, out: &mut [f32]) {
        out.copy_from_slice(&self.inputs[index]);
    }
    fn label(&self, index: usize) -> u32 {
        self.labels[index]
    }
}

fn network() -> Network {
    NetworkSpec::mlp(FEATURES, &[6], CLASSES as usize).build().unwrap()
}

fn params(batch: u64, steps: u64, clip_norm: f64, noise_multiplier: f64) -> PlanParams {
    let mut params = PlanParams::default();
    params.privacy.clip_norm = Some(clip_norm);
    params.privacy.noise_multiplier = Some(noise_multiplier);
    params.train.batch = Some(batch);
    params.train.steps = Some(steps);
    params.train.learning_rate = Some(1.0);
    params
}

/// Keeps the means before the noise, and the batches.
#[derive(Default)]
struct Seen(Vec<(Vec<u32>, Vec<f32>)>);

impl Watch for Seen {
    fn on_step(&mut self, view: &StepView<'_>) -> Result<(), geodp::Error> {
        self.0.push((view.batch.to_vec(), view.mean.to_vec()));
        Ok(())
    }
}

const SEED: u64 = 21;

/// Trains, and gives the weights at the end with what was seen of every step.
fn train(engine: &dyn Engine, params: &PlanParams, start: Vec<f32>) -> (Vec<f32>, Seen) {
    let plan = params.check(engine.facts()).unwrap();
    let mut trainer = Trainer::new(plan, engine, start, NoiseSource::from_seed(SEED)).unwrap();
    let mut seen = Seen::default();
    while trainer.step(&mut seen).unwrap().is_some() {}
    (trainer.weights().to_vec(), seen)
}

fn norm(vector: impl IntoIterator<Item = f64>) -> f64 {
    vector.into_iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn off(a: &[f32], b: &[f32]) -> f64 {
    norm(a.iter().zip(b).map(|(a, b)| f64::from(*a) - f64::from(*b)))
}

/// Batch-of-one truth: (Σ_u min(1, C/‖ḡ_u‖)·ḡ_u)/B by hand, from single gradients of the rows that the
/// step's choice names.
#[test]
fn a_step_is_the_sum_of_clipped_mean_gradients() {
    let (network, data) = (network(), Rows::random(60, 1));
    // Units of 1 to 5 rows; a step uses at most 3.
    let unit_of_row: Vec<u32> = (0..60).map(|row| row * row % 20).map(|x| x % 7).collect();
    let mut numbers: Vec<u32> = unit_of_row.clone();
    numbers.sort_unstable();
    numbers.dedup();
    let unit_of_row: Vec<u32> =
        unit_of_row.iter().map(|unit| numbers.binary_search(unit).unwrap() as u32).collect();
    let units = Units::new(&unit_of_row, 3).unwrap();
    let engine = NetworkEngine::new(&network, &data, None).with_units(&units);
    assert_eq!(engine.facts().records, units.len() as u64);
    let (batch, clip) = (units.len() as u64 - 2, 0.4);
    let start = network.init(2);
    for arithmetic in [Arithmetic::Exact, Arithmetic::FloatingPoint] {
        let mut params = params(batch, 6, clip, 1.0);
        params.privacy.arithmetic = Some(arithmetic);
        // Hardly any learning: the weights of every step are those of the start.
        params.train.learning_rate = Some(1e-12);
        let (_, seen) = train(&engine, &params, start.clone());
        let noise = NoiseSource::from_seed(SEED);
        let mut chosen_of_first = Vec::new();
        for (step, (drawn, mean)) in (0..).zip(&seen.0) {
            let choice = RowChoice::of(&noise, step).unwrap().get();
            let mut expected = vec![0.0f64; network.dim()];
            for &unit in drawn {
                let mut rows = Vec::new();
                units.choose(unit, unit, choice, &mut rows);
                assert!(rows.len() <= 3 && !rows.is_empty());
                let mut of_unit = vec![0.0f64; network.dim()];
                for row in &rows {
                    let mut gradient = vec![0.0; network.dim()];
                    network.sample_gradient(&start, &data, *row, &mut gradient).unwrap();
                    for (sum, g) in of_unit.iter_mut().zip(&gradient) {
                        *sum += f64::from(*g) / rows.len() as f64;
                    }
                }
                let weight = (clip / norm(of_unit.iter().copied())).min(1.0);
                expected.iter_mut().zip(&of_unit).for_each(|(e, g)| *e += weight * g);
                if unit == 0 {
                    chosen_of_first.push(rows);
                }
            }
            let expected: Vec<f32> = expected.iter().map(|e| (e / batch as f64) as f32).collect();
            let (off, length) = (off(mean, &expected), norm(mean.iter().map(|x| f64::from(*x))));
            assert!(off <= 2e-3 * length, "{arithmetic}, step {step}: off by {off} of {length}");
        }
        assert!(units.rows(0).len() > 3);
        chosen_of_first.dedup();
        assert!(chosen_of_first.len() > 1, "every step chooses anew");
    }
}

/// One unit moves a release by at most C/B, however many rows it has; a long one by exactly that.
#[test]
fn one_unit_moves_a_release_by_the_sensitivity() {
    let (network, clip) = (network(), 0.5);
    let mut with = Rows::random(24, 3);
    // Unit 2 has eight long rows that pull together.
    for row in 8..16 {
        with.inputs[row] = vec![300.0, -200.0, 100.0, 50.0, 400.0];
        with.labels[row] = 1;
    }
    let mut without = with.clone();
    // Rows that are not numbers contribute exactly nothing.
    without.inputs[8..16].iter_mut().for_each(|row| row[0] = f32::NAN);
    let unit_of_row: Vec<u32> = (0..24)
        .map(|row| {
            if row < 8 {
                row / 4
            } else if row < 16 {
                2
            } else {
                row - 13
            }
        })
        .collect();
    let units = Units::new(&unit_of_row, 8).unwrap();
    let batch = units.len() as u64;
    for arithmetic in [Arithmetic::Exact, Arithmetic::FloatingPoint] {
        let mut params = params(batch, 1, clip, 1.0);
        params.privacy.arithmetic = Some(arithmetic);
        let run = |data: &Rows| {
            let engine = NetworkEngine::new(&network, data, None).with_units(&units);
            train(&engine, &params, network.init(1)).0
        };
        let moved = off(&run(&with), &run(&without));
        let most = clip / batch as f64;
        assert!((moved / most - 1.0).abs() < 1e-3, "{arithmetic}: {moved} for {most}");
    }
}

/// B divides, not the rows: rows that are there several times change nothing.
#[test]
fn copies_of_rows_change_nothing_on_any_route() {
    let (network, data) = (network(), Rows::random(40, 5));
    let mut copied = Rows { inputs: Vec::new(), labels: Vec::new() };
    let mut unit_of_row = Vec::new();
    for record in 0..40u32 {
        // One copy, two or three: a unit of one row goes another way than one of several.
        for _ in 0..record % 3 + 1 {
            copied.inputs.push(data.inputs[record as usize].clone());
            copied.labels.push(data.labels[record as usize]);
            unit_of_row.push(record);
        }
    }
    let units = Units::new(&unit_of_row, 3).unwrap();
    type Route = (&'static str, fn(&mut PlanParams));
    let routes: [Route; 8] = [
        ("dp", |_| ()),
        ("dp, floating point", |p| p.privacy.arithmetic = Some(Arithmetic::FloatingPoint)),
        ("geodp", |p| {
            p.privacy.mechanism = Mechanism::Geodp { beta: 0.01 };
            p.privacy.noise_multiplier = Some(0.5);
        }),
        ("certified geodp", |p| {
            p.privacy.mechanism = Mechanism::GeodpCertified(PolarSettings::default());
        }),
        ("shuffled", |p| p.privacy.sampling = Sampling::Shuffle),
        ("importance", |p| p.privacy.importance = Some(ImportanceParams::default())),
        ("select", |p| {
            p.privacy.select = Some(SelectParams { batch: 10, ..SelectParams::default() });
        }),
        ("none", |p| {
            p.privacy = Default::default();
            p.privacy.mechanism = Mechanism::None;
        }),
    ];
    for (name, change) in routes {
        let mut params = params(16, 5, 0.4, 1.0);
        params.train.learning_rate = Some(0.05);
        change(&mut params);
        let plain = NetworkEngine::new(&network, &data, None);
        let in_units = NetworkEngine::new(&network, &copied, None).with_units(&units);
        let start = network.init(4);
        let (expected, _) = train(&plain, &params, start.clone());
        let (found, seen) = train(&in_units, &params, start.clone());
        assert_eq!(seen.0.len(), 5);
        let (off, moved) = (off(&found, &expected), off(&expected, &start));
        assert!(moved > 0.0 && off <= 2e-3 * moved, "{name}: off by {off} of {moved}");
    }
}

/// A watch is given the gradients that were summed: of units, with the step's own rows.
#[test]
fn gradients_for_a_watch_are_those_of_the_step() {
    struct Adds;
    impl Watch for Adds {
        fn on_step(&mut self, view: &StepView<'_>) -> Result<(), geodp::Error> {
            let dim = view.mean.len();
            let mut rows = vec![0.0; view.batch.len() * dim];
            view.engine.sample_gradients(view.weights, view.batch, &mut rows).unwrap();
            let mut sum = vec![0.0f32; dim];
            for (place, row) in rows.chunks(dim).enumerate() {
                let length = norm(row.iter().map(|g| f64::from(*g)));
                let weight = view.weight_of.weight(place, length) as f32 / view.denominator as f32;
                sum.iter_mut().zip(row).for_each(|(s, g)| *s += weight * g);
            }
            let length = norm(view.mean.iter().map(|x| f64::from(*x)));
            assert!(off(&sum, view.mean) <= 2e-3 * length);
            Ok(())
        }
    }
    let (network, data) = (network(), Rows::random(60, 8));
    let units = Units::even(12, 5, 2).unwrap();
    let engine = NetworkEngine::new(&network, &data, None).with_units(&units);
    let plan = params(8, 4, 0.3, 1.0).check(engine.facts()).unwrap();
    let noise = NoiseSource::from_seed(1);
    let mut trainer = Trainer::new(plan, &engine, network.init(0), noise).unwrap();
    while trainer.step(&mut Adds).unwrap().is_some() {}
    trainer.step(&mut Silent).unwrap();
}

/// A table that says whose the rows are: the plan, its ε and the sampler count patients.
#[test]
fn the_unit_of_a_table_is_what_its_schema_says() {
    let folder = tempfile::tempdir().unwrap();
    let mut table = "patient,x,ill\n".to_owned();
    for row in 0..120 {
        let (patient, ill) = (row % 40, row % 40 % 2);
        table += &format!("p{patient},{},{ill}\n", 5 * ill + row % 3);
    }
    let schema = "[label]\ncolumn = \"ill\"\nclasses = [\"0\", \"1\"]\n\
                  [unit]\ncolumn = \"patient\"\nmost_rows = 2\n\
                  [[feature]]\ncolumn = \"x\"\nrange = [0, 10]\n";
    std::fs::write(folder.path().join("t.csv"), table).unwrap();
    std::fs::write(folder.path().join("s.toml"), schema).unwrap();
    let mut config = RunConfig::table(folder.path().join("t.csv"), folder.path().join("s.toml"));
    config.privacy.noise_multiplier = Some(1.0);
    config.train.steps = Some(5);
    let run = Run::create(&folder.path().join("run"), config).unwrap();
    let (units, rows) = (run.plan().facts().records, run.split().train.len());
    assert_eq!((units, rows), (36, 108), "a tenth of the patients is held back");
    assert_eq!(run.plan().batch(), 36);
    let ended = run.execute(&mut Silent, &mut Silent, &AtomicBool::new(false)).unwrap();
    assert!(matches!(ended, Ended::Finished(_)));
}
