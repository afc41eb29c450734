//! A table whose rows share a unit: what a run draws, counts and clips is the unit.

use geodp::engine::{Engine, RowChoice};
use geodp::run::Configured;
use geodp::{ModelConfig, RunConfig};
use geodp_nn::Grid;
use std::fmt::Write;
use std::path::Path;

const PATIENTS: usize = 40;
const MOST_ROWS: usize = 3;

const SCHEMA: &str = "[label]\ncolumn = \"ill\"\nclasses = [\"no\", \"yes\"]\n[unit]\ncolumn = \"patient\"\n\
    most_rows = 3\n[[feature]]\ncolumn = \"a\"\nrange = [0, 1]\n[[feature]]\ncolumn = \"b\"\nrange = [0, 1]\n";

/// Patient p has 1 + p mod 7 rows, all of class `ill(p)`.
fn table(folder: &Path, ill: impl Fn(usize) -> bool) -> Configured {
    let mut csv = "patient,a,b,ill\n".to_owned();
    for row in 0..7 {
        for patient in (0..PATIENTS).filter(|patient| row <= patient % 7) {
            let (a, b) = ((patient * 7 + row) % 11, (patient * 3 + row * 5) % 13);
            let ill = if ill(patient) { "yes" } else { "no" };
            writeln!(csv, "p{patient},0.{a:02},0.{b:02},{ill}").unwrap();
        }
    }
    std::fs::write(folder.join("t.csv"), csv).unwrap();
    std::fs::write(folder.join("s.toml"), SCHEMA).unwrap();
    let config = RunConfig::table(folder.join("t.csv"), folder.join("s.toml"));
    let mut config = config.model(ModelConfig::Logistic);
    if let geodp::DataConfig::Table { holdout, .. } = &mut config.data {
        *holdout = Some(0);
    }
    Configured::load(config, &|_, _| ()).unwrap()
}

fn sum(engine: &dyn Engine, weights: &[f32], batch: &[u32], clip: f64) -> Vec<i64> {
    let mut sum = vec![0; weights.len()];
    let grid = Grid::new(clip).unwrap();
    let weight = |_: usize, norm: f64| (clip / norm).min(1.0);
    engine.exact_sum(weights, batch, &weight, grid, &mut sum).unwrap();
    sum
}

/// N counts patients: a plan for as many rows would draw each patient more rarely than it is told.
#[test]
fn records_are_counted_by_unit() {
    let folder = tempfile::tempdir().unwrap();
    let engine = table(folder.path(), |patient| patient % 2 == 0);
    assert_eq!(engine.facts().records, PATIENTS as u64);
    assert!(engine.split().train.len() > 3 * PATIENTS);
}

/// Data sets that differ in all rows of one patient: sums of any batch differ by at most C for each side,
/// and not at all where the patient is not drawn.
#[test]
fn all_rows_of_a_patient_move_a_sum_by_no_more_than_one_record_may() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let one = table(folders[0].path(), |patient| patient % 2 == 0);
    let other = table(folders[1].path(), |patient| patient % 2 == 0 || patient == 13);
    let weights = vec![0.5, -0.25, 0.125];
    let batch: Vec<u32> = (0..PATIENTS as u32).collect();
    let choice = RowChoice::default();
    let (one, other) = (one.at_step(choice).unwrap(), other.at_step(choice).unwrap());
    let clip = 0.05;
    let difference = |batch: &[u32]| {
        let (a, b) = (sum(&*one, &weights, batch, clip), sum(&*other, &weights, batch, clip));
        let square: f64 = a.iter().zip(&b).map(|(a, b)| ((a - b) as f64).powi(2)).sum();
        square.sqrt() / f64::from(1u32 << Grid::BITS)
    };
    let moved = difference(&batch);
    // Patient 13 has seven rows; rows clipped one by one would move the sum six times as far.
    assert!(moved <= 2.0 && moved > 1.9, "{moved}");
    let without: Vec<u32> = batch.iter().copied().filter(|unit| *unit != 13).collect();
    assert_eq!(difference(&without), 0.0);
}

/// A patient's gradient is the mean over at most K rows, chosen anew in each step.
#[test]
fn at_most_k_rows_are_used_and_steps_choose_anew() {
    let folder = tempfile::tempdir().unwrap();
    let engine = table(folder.path(), |patient| patient % 2 == 0);
    let units = engine.split().train.units().unwrap().units().clone();
    let weights = vec![0.5, -0.25, 0.125];
    let noise = geodp_mechanism::NoiseSource::from_seed(3);
    let mut seen = std::collections::BTreeSet::new();
    for step in 0..40 {
        let choice = RowChoice::of(&noise, step).unwrap();
        let (mut rows, mut found) = (Vec::new(), vec![0.0; 3]);
        units.choose(13, 13, choice.get(), &mut rows);
        assert_eq!(rows.len(), MOST_ROWS);
        let at_step = engine.at_step(choice).unwrap();
        at_step.sample_gradients(&weights, &[13], &mut found).unwrap();
        let mut each = vec![0.0; 3 * MOST_ROWS];
        let network = Rows::new(&engine);
        network.gradients(&weights, &rows, &mut each);
        for (at, found) in found.iter().enumerate() {
            let mean: f32 = each.iter().skip(at).step_by(3).sum::<f32>() / MOST_ROWS as f32;
            assert!((found - mean).abs() < 1e-6, "step {step}");
        }
        // And it is this mean that a private step sums: nothing is clipped at C = 100.
        let summed = sum(&*at_step, &weights, &[13], 100.0);
        for (summed, found) in summed.iter().zip(&found) {
            let value = *summed as f64 * 100.0 / f64::from(1u32 << Grid::BITS);
            assert!((value - f64::from(*found)).abs() < 1e-3, "step {step}: {value} and {found}");
        }
        seen.insert(rows);
    }
    assert!(seen.len() > 10, "steps choose the same rows: {}", seen.len());
}

/// The same network on rows, as the reference.
struct Rows<'a> {
    data: &'a geodp_data::Dataset,
    network: geodp_nn::Network,
}

impl<'a> Rows<'a> {
    fn new(engine: &'a Configured) -> Self {
        let data = &engine.split().train;
        Self { data, network: ModelConfig::Logistic.spec(data).build().unwrap() }
    }

    fn gradients(&self, weights: &[f32], rows: &[u32], out: &mut [f32]) {
        self.network.sample_gradients(weights, self.data, rows, out).unwrap();
    }
}
