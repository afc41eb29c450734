//! An engine of one's own in a run: least squares by hand, with ledger, checkpoints and resuming.
//!
//! `cargo run --release -p geodp --example own_engine`

use geodp::engine::{About, Engine, EngineError, WeightOf};
use geodp::params::PlanParams;
use geodp::plan::Facts;
use geodp::run::{Ended, Run};
use geodp::watch::Silent;
use geodp_nn::BatchOutcome;
use std::path::Path;

/// Records (x, y) and the model y ≈ w·x, with loss ½(w·x − y)² and gradient (w·x − y)·x.
pub(crate) struct LeastSquares {
    records: Vec<([f32; 2], f32)>,
}

impl LeastSquares {
    /// Points of the plane y = slope·x₀ − x₁.
    pub(crate) fn new(count: usize, slope: f32) -> Self {
        let at = |i: usize| {
            let x = [(i % 37) as f32 / 37.0 - 0.5, (i % 23) as f32 / 23.0 - 0.5];
            (x, slope * x[0] - x[1])
        };
        Self { records: (0..count).map(at).collect() }
    }

    fn residual(&self, weights: &[f32], record: u32) -> ([f32; 2], f32) {
        let (x, y) = self.records[record as usize];
        (x, weights[0] * x[0] + weights[1] * x[1] - y)
    }
}

impl Engine for LeastSquares {
    fn facts(&self) -> Facts {
        Facts { records: self.records.len() as u64, dim: 2 }
    }

    fn weighted_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        weight_of: WeightOf<'_>,
        sum: &mut [f32],
    ) -> Result<BatchOutcome, EngineError> {
        sum.fill(0.0);
        let mut outcome = BatchOutcome::default();
        for (place, record) in batch.iter().enumerate() {
            let (x, residual) = self.residual(weights, *record);
            let norm = f64::from(residual * residual * (x[0] * x[0] + x[1] * x[1])).sqrt();
            let weight = weight_of.weight(place, norm) as f32;
            sum[0] += weight * residual * x[0];
            sum[1] += weight * residual * x[1];
            outcome.norms.push(norm as f32);
            outcome.losses.push(residual * residual / 2.0);
        }
        Ok(outcome)
    }

    fn mean_loss(&self, weights: &[f32], batch: &[u32]) -> Result<f64, EngineError> {
        let loss = |record: &u32| f64::from(self.residual(weights, *record).1).powi(2) / 2.0;
        Ok(batch.iter().map(loss).sum::<f64>() / batch.len().max(1) as f64)
    }

    fn about(&self) -> About {
        About { model: "Least squares".to_owned(), data: "a plane".to_owned(), ..About::default() }
    }

    /// What ties checkpoints to these records; a hash of all of them in a serious engine.
    fn fingerprint(&self) -> String {
        format!("{:?}", self.records.first())
    }
}

/// DP-SGD at ε = 2 over the engine's records.
pub(crate) fn params() -> PlanParams {
    let mut params = PlanParams::default();
    params.privacy.epsilon = Some(2.0);
    params.privacy.clip_norm = Some(0.5);
    params.train.batch = Some(100);
    params.train.epochs = Some(20);
    params.train.learning_rate = Some(1.0);
    params
}

/// Starts the run in `folder`, or takes it up where it stopped.
#[allow(dead_code, reason = "a test uses this file as a module")]
pub(crate) fn open(folder: &Path) -> Result<Run<LeastSquares>, geodp::Error> {
    let engine = LeastSquares::new(2000, 2.0);
    let plan = params().check(engine.facts())?;
    if folder.join("run.toml").exists() {
        Run::resume_with(folder, plan, engine)
    } else {
        Run::create_with(folder, plan, engine)
    }
}

#[allow(dead_code, reason = "a test uses this file as a module")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let parent = tempfile::tempdir()?;
    let run = open(&parent.path().join("run"))?;
    if let Ended::Finished(done) = run.execute(&mut Silent, &mut Silent, &false.into())? {
        println!("weights {:?}", done.weights);
        print!("{}", done.statement);
    }
    Ok(())
}
