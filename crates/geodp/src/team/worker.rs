//! Every process but the first: holds a share of the records and does what rank 0 asks, until it says stop.
//!
//! It never sees the noise's key, writes no file, and decides nothing.

use super::wire::{Part, PartOutcome, Request, SentRule, Wire};
use super::{Found, Link, LinkError, SentClip};
use crate::Error;
use crate::config::RunConfig;
use crate::engine::{Constant, Engine, NetworkEngine, RowChoice};
use crate::run::Configured;
use crate::step::{Kept, Weighing};
use geodp_mechanism::Clip;
use geodp_nn::{BatchOutcome, Grid};
use std::path::Path;

/// Serves rank 0 until it says stop.
///
/// # Errors
/// If the link breaks, or rank 0 says something that cannot be understood. What goes wrong with data and
/// records is told to rank 0, and no error here.
pub fn serve(link: &dyn Link) -> Result<(), Error> {
    let mut worker = Worker::default();
    while worker.handle(link, &link.receive(0)?)? {}
    Ok(())
}

/// One process's share, between requests: for links that hand requests over instead of waiting for them.
#[derive(Default)]
pub struct Worker {
    share: Option<Configured>,
}

impl Worker {
    /// Does what rank 0 asks, through `link`; `false` if that is to stop.
    ///
    /// # Errors
    /// As [`serve`].
    pub fn handle(&mut self, link: &dyn Link, request: &[u8]) -> Result<bool, Error> {
        match (Request::read(request).ok_or_else(not_understood)?, &self.share) {
            (Request::Stop, _) => return Ok(false),
            (Request::Load { config, folder }, _) => {
                let loaded = load(link, &config, &folder);
                let found = loaded.as_ref().map_err(|error| error.to_string());
                let answer: Result<Found, String> = found.and_then(|share| {
                    share.found().ok_or_else(|| "it holds no share of the records".to_owned())
                });
                self.share = loaded.ok();
                link.send(0, &answer.bytes())?;
            }
            (request, Some(engine)) => work(link, engine, request)?,
            (_, None) => return Err(not_understood()),
        }
        Ok(true)
    }
}

fn not_understood() -> Error {
    LinkError("a message is not one of this program; start the same geodp everywhere".into()).into()
}

fn load(link: &dyn Link, config: &str, folder: &str) -> Result<Configured, Error> {
    let config = RunConfig::from_toml(config, Path::new("the first process's config"))?;
    let folder = (!folder.is_empty()).then(|| Path::new(folder));
    Configured::load_share(folder, config, &|_, _| (), (link.rank(), link.size()))
}

/// Computes and answers one request about a batch.
fn work(link: &dyn Link, configured: &Configured, request: Request) -> Result<(), Error> {
    let mut weights = vec![0.0; configured.network.dim()];
    link.broadcast(&mut weights)?;
    let engine = |part: &Part| {
        let engine = configured.local();
        engine.at(RowChoice::from_bits(part.choice)).unwrap_or(engine)
    };
    match request {
        Request::Sum { part, rule, sensitivity } => {
            let mut sum = vec![0; weights.len()];
            let outcome = add_up(&engine(&part), &weights, &part, rule, sensitivity, &mut sum);
            if outcome.is_err() {
                sum.fill(0);
            }
            link.sum_to_first(&mut sum)?;
            let answer = outcome.map(PartOutcome::from).map_err(|error| error.to_string());
            link.send(0, &answer.bytes())?;
        }
        Request::Norms(part) => {
            let mut unread = vec![0.0; weights.len()];
            let outcome =
                engine(&part).weighted_sum(&weights, &part.units, &Constant(0.0), &mut unread);
            let answer = outcome.map(PartOutcome::from).map_err(|error| error.to_string());
            link.send(0, &answer.bytes())?;
        }
        Request::Losses(part) => {
            let losses = engine(&part).losses(&weights, &part.units);
            link.send(0, &losses.map_err(|error| error.to_string()).bytes())?;
        }
        Request::Load { .. } | Request::Stop => return Err(not_understood()),
    }
    Ok(())
}

fn add_up(
    engine: &NetworkEngine<'_>,
    weights: &[f32],
    part: &Part,
    rule: SentRule,
    sensitivity: f64,
    sum: &mut [i64],
) -> Result<BatchOutcome, Error> {
    let made = |SentClip { kind, clip_norm }| -> Result<Clip, Error> { Ok(kind.at(clip_norm)?) };
    let weighing = match rule {
        SentRule::Clipped(clip) => Weighing::Clipped(made(clip)?),
        SentRule::Kept { clip, length, uniforms } => {
            Weighing::Kept(Kept::new(made(clip)?, length, uniforms)?)
        }
    };
    let grid = Grid::new(sensitivity)?;
    engine
        .exact_sum(weights, &part.units, &weighing, grid, sum)
        .map_err(|source| Error::Plan(source.to_string()))
}
