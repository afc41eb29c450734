//! A private step in exact arithmetic: what it releases is what the theorem is about, and a batch may
//! be summed in any parts.

use geodp::engine::{Engine, EngineError, WeightOf};
use geodp::params::{Mechanism, PlanParams};
use geodp::plan::Facts;
use geodp::trainer::Trainer;
use geodp::watch::Silent;
use geodp_account::Arithmetic;
use geodp_mechanism::{Clip, ExactGaussian, Grid, NoiseSource, PerturbSum, Purpose};
use geodp_nn::{BatchOutcome, Network, NetworkSpec, Samples};

/// Records that a formula makes: 300 inputs of 12 values, three classes.
struct Waves;

impl Samples for Waves {
    fn len(&self) -> usize {
        300
    }
    fn input_len(&self) -> usize {
        12
    }
    fn read_input(&self, index: usize, out: &mut [f32]) {
        for (at, out) in out.iter_mut().enumerate() {
            *out = ((index * 31 + at * at * 7 + at) % 97) as f32 / 48.5 - 1.0;
        }
    }
    fn label(&self, index: usize) -> u32 {
        index as u32 % 3
    }
}

/// A network whose batches are summed in `parts` parts, the last part first.
struct InParts {
    network: Network,
    parts: usize,
}

impl Engine for InParts {
    fn facts(&self) -> Facts {
        Facts { records: 300, dim: self.network.dim() }
    }
    fn weighted_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        weight_of: WeightOf<'_>,
        sum: &mut [f32],
    ) -> Result<BatchOutcome, EngineError> {
        let weight_of = |place: usize, norm: f64| weight_of.weight(place, norm);
        Ok(self.network.weighted_sum(weights, &Waves, batch, &weight_of, sum)?)
    }
    fn exact_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        weight_of: WeightOf<'_>,
        grid: geodp_nn::Grid,
        sum: &mut [i64],
    ) -> Result<BatchOutcome, EngineError> {
        let len = batch.len().div_ceil(self.parts).max(1);
        let mut part_sum = vec![0; sum.len()];
        sum.fill(0);
        for (part, batch) in batch.chunks(len).enumerate().rev() {
            let weight_of = |place, norm| weight_of.weight(part * len + place, norm);
            self.network.exact_sum(weights, &Waves, batch, &weight_of, grid, &mut part_sum)?;
            sum.iter_mut().zip(&part_sum).for_each(|(sum, part)| *sum += part);
        }
        Ok(BatchOutcome::default())
    }
    fn mean_loss(&self, weights: &[f32], batch: &[u32]) -> Result<f64, EngineError> {
        Ok(self.network.evaluate(weights, &Waves, batch)?.mean_loss)
    }
}

fn engine(parts: usize) -> InParts {
    InParts { network: NetworkSpec::mlp(12, &[9], 3).build().unwrap(), parts }
}

fn params(mechanism: Mechanism) -> PlanParams {
    let mut params = PlanParams::default();
    params.privacy.mechanism = mechanism;
    params.privacy.noise_multiplier = Some(0.8);
    params.privacy.clip_norm = Some(0.5);
    params.train.batch = Some(40);
    params.train.steps = Some(6);
    params.train.learning_rate = Some(0.25);
    params
}

fn trained(engine: &InParts, params: &PlanParams) -> Vec<f32> {
    let plan = params.check(engine.facts()).unwrap();
    let start = engine.network.init(3);
    let mut trainer = Trainer::new(plan, engine, start, NoiseSource::from_seed(9)).unwrap();
    while trainer.step(&mut Silent).unwrap().is_some() {}
    trainer.weights().to_vec()
}

#[test]
fn any_split_of_the_batches_trains_to_the_same_bits() {
    let certified = Mechanism::GeodpCertified(Default::default());
    for mechanism in [Mechanism::Dp, Mechanism::Geodp { beta: 0.1 }, certified] {
        let params = params(mechanism);
        let whole = trained(&engine(1), &params);
        for parts in [2, 3, 7, 40] {
            assert_eq!(trained(&engine(parts), &params), whole, "{mechanism} in {parts} parts");
        }
    }
}

/// One step by hand: the coins, the integers of every record, the rounded noise, the division.
#[test]
fn a_step_releases_the_exact_sum_with_rounded_noise() {
    let engine = engine(1);
    let mut params = params(Mechanism::Dp);
    params.train.steps = Some(1);
    params.train.optimizer = Some(geodp::optimizer::OptimizerKind::Sgd);
    let (start, noise) = (engine.network.init(3), NoiseSource::from_seed(9));
    let mut coins = noise.stream(Purpose::Sampling, 0, 0).unwrap();
    let threshold = ((40_u128 << 64) / 300) as u64;
    let batch: Vec<u32> = (0..300).filter(|_| coins.word() < threshold).collect();
    let clip = Clip::flat(0.5).unwrap();
    let grid = geodp_nn::Grid::new(0.5).unwrap();
    let (mut sum, mut alone) = (vec![0; start.len()], vec![0; start.len()]);
    for index in &batch {
        let weight_of = |_, norm| clip.weight(norm);
        engine.network.exact_sum(&start, &Waves, &[*index], &weight_of, grid, &mut alone).unwrap();
        let squares: i128 = alone.iter().map(|n| i128::from(*n).pow(2)).sum();
        assert!(squares <= 1 << 60, "record {index} is longer than C");
        sum.iter_mut().zip(&alone).for_each(|(sum, n)| *sum += n);
    }
    let units = Grid::new(geodp_nn::Grid::BITS).unwrap();
    let gaussian = ExactGaussian::new(clip.sensitivity(), 0.8, units, 40).unwrap();
    let release = gaussian.release(&sum, &noise, 0).unwrap();
    let expected: Vec<f32> = start.iter().zip(&release).map(|(w, g)| w - 0.25 * g).collect();
    assert_eq!(trained(&engine, &params), expected);
}

#[test]
fn the_statement_says_which_arithmetic() {
    let facts = engine(1).facts();
    let arithmetic = |params: &PlanParams| params.check(facts).unwrap().arithmetic();
    assert_eq!(arithmetic(&params(Mechanism::Dp)), Arithmetic::Exact);
    let mut floating = params(Mechanism::Dp);
    floating.privacy.arithmetic = Some(Arithmetic::FloatingPoint);
    assert_eq!(arithmetic(&floating), Arithmetic::FloatingPoint);
    // Its bits are other ones, its weights nearly the same only without noise: it is another route.
    assert_ne!(trained(&engine(1), &floating), trained(&engine(1), &params(Mechanism::Dp)));
}
