//! A clipping rule of one's own in a plan: weights that fade out smoothly instead of being cut.
//!
//! `cargo run --release -p geodp --example own_clip_rule`

use geodp::params::PlanParams;
use geodp::plan::Facts;
use geodp_mechanism::{Clip, ClipNorm, ClipRule};

/// w(n) = C/√(n² + C²): never more than C/n, so the weighted norm stays below C.
#[derive(Debug)]
pub(crate) struct Smooth {
    clip_norm: ClipNorm,
}

impl Smooth {
    /// With this C.
    pub(crate) fn clip(clip_norm: f64) -> Result<Clip, geodp_mechanism::Error> {
        Ok(Clip::new(Self { clip_norm: ClipNorm::new(clip_norm)? }))
    }
}

impl ClipRule for Smooth {
    fn clip_norm(&self) -> ClipNorm {
        self.clip_norm
    }

    fn weight(&self, norm: f64) -> f64 {
        self.clip_norm.get() / norm.hypot(self.clip_norm.get())
    }
}

#[allow(dead_code, reason = "a test uses this file as a module")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut params = PlanParams::default();
    params.privacy.noise_multiplier = Some(1.0);
    params.train.batch = Some(100);
    params.train.epochs = Some(10);
    params.train.learning_rate = Some(0.5);
    let facts = Facts { records: 2000, dim: 50 };
    let plan = params.check_with_clip(facts, Smooth::clip(0.2)?)?;
    println!("noise is scaled by C = {:?}", plan.clip_norm());
    if let Some(claim) = plan.protection().claim_after(plan.steps())? {
        println!("after {} steps: {claim}", plan.steps());
    }
    // The plan goes into a Trainer, or with an engine of one's own into a Run.
    Ok(())
}
