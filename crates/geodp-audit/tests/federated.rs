//! Clients as canaries: what an attacker learns of a client from a federation's weights stays within the
//! claim, over 100 seeds; and the same attack finds a federation that claims more than its noise gives.
//!
//! Client i sends a huge update along a parameter of its own, or, if its coin fell "out", does not reply:
//! the very neighbour that the claim is about. Its score is how far that parameter went.

use geodp::PlanParams;
use geodp::engine::{Engine, EngineError};
use geodp::federated::{self, Call, ClientEngine, Clients, Replies};
use geodp::params::Mechanism;
use geodp::trainer::Trainer;
use geodp::watch::Silent;
use geodp_audit::one_run::{OneRunParams, audit};
use geodp_mechanism::NoiseSource;

const CLIENTS: usize = 300;
const DELTA: f64 = 1e-4;

struct Canaries<'a>(&'a [bool]);

impl Clients for Canaries<'_> {
    fn population(&self) -> u64 {
        CLIENTS as u64
    }
    fn dim(&self) -> usize {
        CLIENTS
    }
    fn ask(&self, call: &Call<'_>, replies: &Replies<'_>) -> Result<(), EngineError> {
        for (place, client) in call.cohort.iter().map(|client| *client as usize).enumerate() {
            if self.0[client] {
                let mut update = vec![0.0; CLIENTS];
                update[client] = 1e6;
                replies.add(place, &update);
            }
        }
        Ok(())
    }
}

fn params(noise_multiplier: f64, mechanism: Mechanism) -> PlanParams {
    let mut params = PlanParams::default();
    params.privacy.mechanism = mechanism;
    params.privacy.noise_multiplier = Some(noise_multiplier);
    params.privacy.delta = Some(DELTA);
    params.privacy.clip_norm = Some(0.5);
    params.train.batch = Some(CLIENTS as u64 / 2);
    params.train.steps = Some(4);
    params.train.learning_rate = Some(1.0);
    params
}

/// The largest lower bound on ε over these seeds.
fn audited(params: &PlanParams, seeds: u64) -> f64 {
    let how = OneRunParams { canaries: CLIENTS, delta: DELTA, significance: 0.05 };
    let bound = |seed: u64| {
        let found = audit(&how, &NoiseSource::from_seed(1000 + seed), |present| {
            let engine = ClientEngine::new(Canaries(present));
            let facts = engine.facts();
            let plan = federated::plan(params, facts.records, facts.dim)?;
            let noise = NoiseSource::from_seed(seed);
            let mut trainer = Trainer::new(plan, &engine, vec![0.0; CLIENTS], noise)?;
            while trainer.step(&mut Silent)?.is_some() {}
            Ok(trainer.weights().iter().map(|w| f64::from(*w)).collect())
        });
        found.unwrap().epsilon_lower
    };
    (0..seeds).map(bound).fold(0.0, f64::max)
}

fn claimed(params: &PlanParams) -> f64 {
    let plan = federated::plan(params, CLIENTS as u64, CLIENTS).unwrap();
    plan.protection().claim_after(plan.steps()).unwrap().unwrap().upper()
}

#[test]
fn no_client_shows_more_than_is_claimed_over_a_hundred_seeds() {
    for mechanism in [Mechanism::Dp, Mechanism::GeodpCertified(Default::default())] {
        let params = params(1.0, mechanism);
        let (found, claim) = (audited(&params, 100), claimed(&params));
        assert!(found <= claim, "{mechanism:?}: {found} > {claim}");
        assert!(found > 0.1, "{mechanism:?}: the attack sees nothing ({found})");
    }
}

/// A tenth of the noise that is claimed, as a clipping ten times as wide would leave it. 300 canaries can
/// refute an ε of about 3.9 at most, so the claim is a small one.
#[test]
fn a_federation_that_claims_too_much_is_found_out() {
    let (true_noise, said) = (params(0.3, Mechanism::Dp), params(3.0, Mechanism::Dp));
    let (found, claim) = (audited(&true_noise, 3), claimed(&said));
    assert!(found > claim, "{found} ≤ {claim}");
    assert!(audited(&said, 3) <= claim);
}
