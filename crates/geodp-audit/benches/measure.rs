//! What measuring costs: a step of the paper's CNN on MNIST at B = 1024 with every record of its
//! batch measured, against the same step plain. `cargo bench -p geodp-audit --bench measure`.
//!
//! Steps alternate, so that a busy machine slows both alike; the smallest times are compared.

use geodp::engine::NetworkEngine;
use geodp::params::{Mechanism, PlanParams};
use geodp::plan::Facts;
use geodp::trainer::Trainer;
use geodp::watch::Silent;
use geodp_audit::measure::Measure;
use geodp_data::mnist;
use geodp_mechanism::NoiseSource;
use geodp_nn::NetworkSpec;
use std::time::Instant;

const ROUNDS: u64 = 15;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let data = mnist::load_train(&mnist::standard_scaling())?;
    let network = NetworkSpec::cnn().build()?;
    let facts = Facts { records: data.len() as u64, dim: network.dim() };
    let engine = NetworkEngine::new(&network, &data, None);
    for mechanism in [Mechanism::Dp, Mechanism::Geodp { beta: 0.1 }] {
        let mut params = PlanParams::default();
        params.privacy.mechanism = mechanism;
        params.privacy.noise_multiplier = Some(1.0);
        params.train.batch = Some(1024);
        params.train.steps = Some(2 * ROUNDS);
        params.train.learning_rate = Some(0.1);
        let plan = params.check(facts)?;
        let source = NoiseSource::from_seed(1);
        let mut measure = Measure::new(facts.records, facts.records, 1, &source)?;
        let mut trainer = Trainer::new(plan, &engine, network.init(0), source)?;
        let (mut plain, mut watched) = (f64::INFINITY, f64::INFINITY);
        let mut records = 0;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            trainer.step(&mut Silent)?;
            plain = plain.min(start.elapsed().as_secs_f64());
            let start = Instant::now();
            if let Some(outcome) = trainer.step(&mut measure)? {
                let seconds = start.elapsed().as_secs_f64() * 1000.0 / outcome.norms.len() as f64;
                watched = watched.min(seconds);
                records = outcome.norms.len();
            }
        }
        let extra = watched - plain * 1000.0 / records as f64;
        println!(
            "{mechanism}: plain step {:.1} ms; measuring 1,000 records adds {:.1} ms = {:.1} plain steps",
            1e3 * plain,
            1e3 * extra,
            extra / plain
        );
    }
    Ok(())
}
