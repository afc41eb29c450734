//! Adaptive clipping of clients: C finds the quantile, sum and votes together cost what the ledger says,
//! and C survives a kill.
//!
//! The faults to be caught: the sum's noise at the plan's σ (votes for free), votes without noise, votes of
//! those who did not reply, noise or clipping by the first C, C lost by a resume.

use geodp::federated::{self, Round, Server, Start};
use geodp::params::PlanParams;
use geodp::plan::{Facts, Plan};
use geodp::quantile::QuantileParams;
use geodp_account::{Event, Ledger};
use std::path::Path;

const DIM: usize = 400;

fn params(quantile: QuantileParams, rounds: u64) -> PlanParams {
    let mut params = PlanParams::default();
    params.privacy.clip_norm = Some(1.0);
    params.privacy.quantile = Some(quantile);
    params.privacy.noise_multiplier = Some(1.0);
    params.train.batch = Some(50);
    params.train.steps = Some(rounds);
    params.train.learning_rate = Some(1.0);
    params.train.seed = Some(4);
    params
}

fn plan(params: &PlanParams) -> Plan {
    federated::plan(params, 100, DIM).unwrap()
}

fn start() -> Start {
    Start { weights: vec![0.0; DIM], model: String::new(), clients: String::new() }
}

fn server(folder: &Path, params: &PlanParams) -> Server {
    Server::create(folder, plan(params), start()).unwrap()
}

/// Client i sends an update of norm 0.01·(1 + i), i from 0 to 99.
fn reply(round: &mut Round) {
    for client in round.cohort().to_vec() {
        let mut update = vec![0.0; DIM];
        update[client as usize] = 0.01 * (client + 1) as f32;
        round.add(client, &update);
    }
}

fn root_mean_square(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    (values.map(|x| x * x).sum::<f64>() / count).sqrt()
}

#[test]
fn c_finds_the_quantile_of_the_norms() {
    let parent = tempfile::tempdir().unwrap();
    for (quantile, from) in [(0.5, 1.0), (0.8, 1.0), (0.2, 20.0), (0.5, 0.001)] {
        let settings = QuantileParams { quantile, ..QuantileParams::default() };
        let mut params = params(settings, 120);
        params.privacy.clip_norm = Some(from);
        let mut server = server(&parent.path().join(format!("{quantile}-{from}")), &params);
        let mut late = Vec::new();
        while let Some(mut round) = server.begin().unwrap() {
            reply(&mut round);
            server.finish(round).unwrap();
            if server.rounds_done() > 90 {
                late.push(server.clip_norm().unwrap().unwrap());
            }
        }
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        assert!((mean / quantile - 1.0).abs() < 0.12, "{quantile} from {from}: {mean}");
    }
}

/// Nobody replies: what moves the weights is the sum's noise, and what moves C is the votes'. 5.5 standard
/// errors each: a false alarm in 4e-8.
#[test]
fn sum_and_votes_have_the_noise_that_is_charged() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    let (votes, rounds) = (1.25_f64, 60);
    let settings = QuantileParams { noise_multiplier: Some(votes), ..QuantileParams::default() };
    let params = params(settings, rounds);
    let mut server = server(&folder, &params);
    let (mut noise, mut moves) = (Vec::new(), Vec::new());
    while let Some(round) = server.begin().unwrap() {
        let (before, c) = (server.weights().to_vec(), server.clip_norm().unwrap().unwrap());
        server.finish(round).unwrap();
        let unit = c / 50.0;
        noise.extend(before.iter().zip(server.weights()).map(|(b, a)| f64::from(a - b) / unit));
        let share = 0.5 - (server.clip_norm().unwrap().unwrap() / c).ln() / 0.2;
        moves.push((share - 0.5) * 2.0 * 50.0);
    }
    // 1/σ² = 1/σ_s² + 1/σ_v² at σ = 1.
    let sum = 1.0 / (1.0 - votes.powi(-2)).sqrt();
    let (of_sum, of_votes) =
        (root_mean_square(noise.into_iter()), root_mean_square(moves.into_iter()));
    let errors = |count: f64| 5.5 / (2.0 * count).sqrt();
    assert!((of_sum / sum - 1.0).abs() < errors(rounds as f64 * DIM as f64), "{of_sum} {sum}");
    assert!((of_votes / votes - 1.0).abs() < errors(rounds as f64), "{of_votes} {votes}");
    let ledger = Ledger::read(&folder.join("ledger.jsonl")).unwrap();
    let release = Event::sampled_gaussian(0.5, 1.0);
    assert!(ledger.records.iter().all(|r| (&r.event, r.count) == (&release, 1)));
    assert_eq!(ledger.steps(), rounds);
}

/// After C has grown, a client moves the release by C/B at most, and is seen to.
#[test]
fn a_client_is_held_to_the_c_of_its_round() {
    let parent = tempfile::tempdir().unwrap();
    let params = params(QuantileParams { quantile: 0.9, ..Default::default() }, 8);
    let release = |name: &str, last: &[f32]| {
        let mut server = server(&parent.path().join(name), &params);
        for _ in 0..7 {
            let mut round = server.begin().unwrap().unwrap();
            for client in round.cohort().to_vec() {
                round.add(client, &[1.0; DIM]);
            }
            server.finish(round).unwrap();
        }
        let c = server.clip_norm().unwrap().unwrap();
        let mut round = server.begin().unwrap().unwrap();
        let first = round.cohort()[0];
        if !last.is_empty() {
            round.add(first, last);
        }
        server.finish(round).unwrap();
        (c, server.weights().to_vec())
    };
    let (c, without) = release("without", &[]);
    let (again, with) = release("with", &[1e20; DIM]);
    assert!(c > 1.5 && c == again, "C grows where all updates are longer: {c}");
    let moved = without.iter().zip(&with).map(|(a, b)| f64::from(a - b));
    let moved = root_mean_square(moved) * (DIM as f64).sqrt();
    assert!((moved / (c / 50.0) - 1.0).abs() < 1e-4, "{moved} {c}");
}

#[test]
fn a_killed_server_goes_on_with_its_c() {
    let parent = tempfile::tempdir().unwrap();
    let params = params(QuantileParams::default(), 5);
    let mut whole = server(&parent.path().join("whole"), &params);
    while let Some(mut round) = whole.begin().unwrap() {
        reply(&mut round);
        whole.finish(round).unwrap();
    }
    let folder = parent.path().join("killed");
    drop(server(&folder, &params));
    let resume = |params: &PlanParams| Server::resume(&folder, plan(params), start());
    for _ in 0..5 {
        let mut server = resume(&params).unwrap();
        let mut round = server.begin().unwrap().unwrap();
        reply(&mut round);
        server.finish(round).unwrap();
    }
    let mut other = params.clone();
    other.privacy.quantile = Some(QuantileParams { rate: 0.3, ..Default::default() });
    assert!(resume(&other).is_err(), "another plan than the run's");
    let resumed = resume(&params).unwrap();
    assert_eq!(resumed.weights(), whole.weights());
    assert_eq!(resumed.clip_norm().unwrap(), whole.clip_norm().unwrap());
    assert_ne!(resumed.clip_norm().unwrap(), Some(1.0));
    resumed.conclude().unwrap();
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("follows the 0.5 quantile"), "the page says that C was adapted");
}

#[test]
fn only_private_rounds_of_clients_adapt_their_c() {
    let adaptive = params(QuantileParams::default(), 5);
    let of_records = adaptive.check(Facts { records: 100, dim: DIM }).unwrap_err().to_string();
    assert!(of_records.contains("clients"), "{of_records}");
    let mut plain = adaptive.clone();
    plain.privacy.mechanism = geodp::Mechanism::None;
    plain.privacy.noise_multiplier = None;
    let plain = federated::plan(&plain, 100, DIM).unwrap_err().to_string();
    assert!(plain.contains("noise"), "{plain}");
}
