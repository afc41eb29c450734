//! Figure 5: logistic regression under the released code's protocol and under a fair one.

pub mod curves;
mod draw;
pub mod train;

use crate::Error;
use crate::experiment::{Cell, Desk, Drawn, Experiment};
use crate::options::{Options, Size};
use crate::store::Store;
use curves::{Curve, Protocol};
use serde_json::{Value, json};
use std::cell::OnceCell;
use train::{Digits, Losses};

/// Figure 5.
#[derive(Default)]
pub struct Logistic {
    digits: OnceCell<Digits>,
}

/// Every training of the figure: (protocol, curve), each once.
fn trainings() -> Vec<(Protocol, Curve)> {
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

fn key(protocol: Protocol, curve: &Curve, seed: u64) -> String {
    format!("{}-{}-seed{seed}", protocol.name(), curve.key())
}

impl Logistic {
    fn digits(&self, size: Size) -> Result<&Digits, Error> {
        if let Some(digits) = self.digits.get() {
            return Ok(digits);
        }
        let digits = if size == Size::Tiny { Digits::open(64, 10) } else { Digits::open(1, 350) }?;
        Ok(self.digits.get_or_init(|| digits))
    }

    /// Losses of every finished seed of a curve.
    ///
    /// # Errors
    /// A store that cannot be read.
    pub fn losses(store: &Store, protocol: Protocol, curve: &Curve) -> Result<Vec<Losses>, Error> {
        let seeds = store.settings("fig5")?.map_or(0, |s| s.seeds);
        let mut all = Vec::new();
        for seed in 0..seeds {
            all.extend(store.result::<Losses>("fig5", &key(protocol, curve, seed))?);
        }
        Ok(all)
    }
}

impl Experiment for Logistic {
    fn id(&self) -> &'static str {
        "fig5"
    }

    fn title(&self) -> &'static str {
        "Figure 5: logistic regression under two protocols"
    }

    fn cells(&self, options: &Options) -> Vec<Cell> {
        let seeds = 0..options.seeds;
        seeds
            .flat_map(|seed| trainings().into_iter().map(move |(p, c)| (p, c, seed)))
            .map(|(protocol, curve, seed)| Cell {
                key: key(protocol, &curve, seed),
                config: json!({ "protocol": protocol, "curve": curve }),
                seed,
                expected_seconds: 2.0,
            })
            .collect()
    }

    fn run(&self, cell: &Cell, desk: &mut Desk<'_>) -> Result<Value, Error> {
        let found = trainings().into_iter().find(|(p, c)| key(*p, c, cell.seed) == cell.key);
        let (protocol, curve) =
            found.ok_or_else(|| Error::Argument(format!("no cell {}", cell.key)))?;
        let digits = self.digits(desk.options.size)?;
        let losses = digits.train(protocol, &curve, cell.seed, &mut |share| desk.tick(share))?;
        Ok(serde_json::to_value(losses).unwrap_or_default())
    }

    fn draw(&self, store: &Store) -> Result<Option<Drawn>, Error> {
        draw::draw(store)
    }
}
