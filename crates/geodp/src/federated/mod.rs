//! Federated learning: the same training, with a client in the place of a record.
//!
//! Whatever one index of a batch stands for is the unit of privacy. Here it is a client with all its
//! data, and its "gradient" is −Δ, the update Δ = (weights after local training) − (weights it was sent)
//! turned round. So everything else is that of training: Poisson cohorts of rate q = B/N, clipping to C
//! (on the server; C may follow a [`quantile`](crate::quantile) of the norms), integer sums, DP, GeoDP or certified GeoDP, the optimiser (SGD with η = 1 is FedAvg),
//! ledger, hard stop, checkpoints, statement, audits.
//!
//! | who calls whom | use |
//! |---|---|
//! | the run calls the clients | [`Clients`] in a [`ClientEngine`], in a [`Run`](crate::Run) or [`Trainer`](crate::trainer::Trainer) |
//! | a server loop of one's own calls us (Flower's) | [`Server`]: begin a [`Round`], add updates, finish it |
//!
//! [`Simulated`] clients over [`Shards`] of one data set are for simulations.
//!
//! Both give the same bits, because the second is an engine of the first as well.
//!
//! # Guarantee
//! - N is the number of places for clients, public and fixed. A place without a client, and a client
//!   that fails, is late or answers nonsense, contributes nothing: that is the neighbour (zero-out) the
//!   claim is about. Nothing that depends on who replied is released: the sum is divided by B = q·N, and
//!   a cohort that is empty is released as noise.
//! - A round is charged durably before its cohort is told, and its weights are seen only after its
//!   checkpoint. Clients asked again may answer otherwise, so noise must not be used on two answers: a
//!   round that was cut off was never seen, and it is made again. Hence a checkpoint after every round
//!   ([`Engine::repeats`](crate::engine::Engine::repeats)).
//! - Whoever adds noise sees single updates: the server is trusted with them, and with the cohort.

mod clients;
mod gather;
mod local;
mod server;
mod shards;
mod simulated;

pub use clients::{Call, ClientEngine, Clients, Replies};
pub use gather::Reply;
pub use local::{Local, update};
pub use server::{Round, Server, Start};
pub use shards::Shards;
pub use simulated::Simulated;

use crate::Error;
use crate::params::PlanParams;
use crate::plan::{Facts, Plan, refuse};
use crate::sampler::Sampling;
use geodp_account::Arithmetic;

/// What is protected, as statements spell it.
pub(crate) const CLIENT: &str = "client";

/// The plan of `population` clients and a model of `dim` parameters; `batch` of `params` is the expected
/// cohort, `steps` are rounds, `learning_rate` is the server's. A checkpoint is written after each round.
///
/// # Errors
/// [`Error::Plan`] as of [`PlanParams::check`], and for what rounds of clients cannot be.
pub fn plan(params: &PlanParams, population: u64, dim: usize) -> Result<Plan, Error> {
    let mut params = params.clone();
    let quantile = params.privacy.quantile.take();
    let privacy = &params.privacy;
    let private = privacy.mechanism.is_private();
    if privacy.sampling == Sampling::Shuffle {
        return refuse(
            "cohorts of fixed size are not what is accounted here; use sampling = \"poisson\"",
        );
    }
    if private && privacy.arithmetic == Some(Arithmetic::FloatingPoint) {
        return refuse("updates are summed in whole numbers; use arithmetic = \"exact\"");
    }
    let asks_more = [
        ("importance", privacy.importance.is_some()),
        ("select", privacy.select.is_some()),
        ("release_accuracy", privacy.release_accuracy.is_some()),
        ("measure", params.train.measure.is_some()),
    ];
    if let Some((name, _)) = asks_more.into_iter().find(|(_, given)| *given) {
        return refuse(format!(
            "{name} asks clients for more than the one update of a round; leave it out"
        ));
    }
    params.train.checkpoint_every = match params.train.checkpoint_every {
        None | Some(1) => Some(1),
        Some(every) => {
            return refuse(format!(
                "checkpoint_every is {every}, but a round's weights are sent to clients, and must be \
                 in a checkpoint before; leave it out"
            ));
        }
    };
    let plan = params.check(Facts { records: population, dim })?.with_unit(CLIENT);
    quantile.map_or(Ok(plan.clone()), |quantile| plan.with_quantile(quantile))
}
