//! Figure 5: logistic regression under the released code's protocol and under a fair one.

pub mod curves;
mod draw;
pub mod train;

use crate::Error;
use crate::experiment::{Cell, CellContext, Drawn, Experiment, FinishedOf, PageContext};
use crate::options::{Options, Size};
use curves::{Curve, Protocol};
use serde_json::json;
use std::cell::OnceCell;
use train::{Digits, Losses};

/// Figure 5.
#[derive(Default)]
pub struct Logistic {
    digits: OnceCell<Digits>,
}

/// One training: a curve under a protocol, with a seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Training {
    /// How it is run.
    pub protocol: Protocol,
    /// What is run.
    pub curve: Curve,
    /// Decides batches and noise.
    pub seed: u64,
}

/// Every curve of the figure under each protocol, each once.
fn curves_by_protocol() -> Vec<(Protocol, Curve)> {
    let mut all: Vec<(Protocol, Curve)> = Vec::new();
    for protocol in Protocol::ALL {
        for curve in curves::panels().into_iter().flat_map(|panel| panel.curves) {
            if !all.contains(&(protocol, curve)) {
                all.push((protocol, curve));
            }
        }
    }
    all
}

impl Logistic {
    fn digits(&self, size: Size) -> Result<&Digits, Error> {
        if let Some(digits) = self.digits.get() {
            return Ok(digits);
        }
        let digits = if size == Size::Tiny { Digits::open(64, 10) } else { Digits::open(1, 350) }?;
        Ok(self.digits.get_or_init(|| digits))
    }
}

/// Losses of every finished seed of a curve.
pub fn losses_of<'a>(
    finished: &'a FinishedOf<Logistic>,
    protocol: Protocol,
    curve: &Curve,
) -> Vec<&'a Losses> {
    let own = |job: &Training| job.protocol == protocol && job.curve == *curve;
    finished.pairs.iter().filter(|(job, _)| own(job)).map(|(_, losses)| losses).collect()
}

impl Experiment for Logistic {
    type Job = Training;
    type Result = Losses;

    fn id(&self) -> &'static str {
        "fig5"
    }

    fn title(&self) -> &'static str {
        "Figure 5: logistic regression under two protocols"
    }

    fn jobs(&self, options: &Options) -> Vec<Training> {
        let of_seed = |seed| {
            let all = curves_by_protocol().into_iter();
            all.map(move |(protocol, curve)| Training { protocol, curve, seed })
        };
        (0..options.seeds).flat_map(of_seed).collect()
    }

    fn cell(&self, job: &Training, _: &Options) -> Cell {
        let Training { protocol, curve, seed } = job;
        Cell {
            key: format!("{}-{}-seed{seed}", protocol.name(), curve.key()),
            config: json!({ "protocol": protocol, "curve": curve.config() }),
            seed: *seed,
            expected_seconds: 2.0,
        }
    }

    fn run(&self, job: &Training, context: &mut CellContext<'_>) -> Result<Losses, Error> {
        let digits = self.digits(context.options.size)?;
        digits.train(job.protocol, &job.curve, job.seed, &mut |share| context.tick(share))
    }

    fn draw(&self, finished: &FinishedOf<Self>, _: &PageContext<'_>) -> Result<Drawn, Error> {
        Ok(draw::draw(self.title(), finished))
    }
}
