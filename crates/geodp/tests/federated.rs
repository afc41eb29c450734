//! Federated rounds: both ways of driving them give the same bits, a client moves a release by at most
//! C/B whatever it sends, what did not come is nothing, and the ledger is right wherever a server dies.
//!
//! Each of these faults makes a test here fail: cohorts of fixed size, clipping after the sum, dividing by
//! the replies, charging after the release, charging a resumed round again, noise left out of an empty
//! round.

use geodp::engine::{Engine, EngineError, RowChoice};
use geodp::federated::{self, Call, ClientEngine, Clients, Replies, Reply, Round, Server, Start};
use geodp::optimizer::{Moments, OptimizerKind};
use geodp::params::{ClipKind, Mechanism, PlanParams};
use geodp::plan::Plan;
use geodp::run::{Ended, Run};
use geodp::sampler::Sampling;
use geodp::watch::Silent;
use geodp_account::{Account, Adjacency, Arithmetic, Event, Ledger, PldAccountant};
use geodp_nn::Grid;
use std::path::Path;

const DIM: usize = 5;

/// Client i pulls the weights half the way to a point of its own.
fn update(client: u32, weights: &[f32]) -> Vec<f32> {
    let target = |z: usize| ((client as usize * 7 + z * 3) % 11) as f32 / 11.0 - 0.3;
    weights.iter().enumerate().map(|(z, w)| 0.5 * (target(z) - w)).collect()
}

/// Clients of which every fifth never replies.
struct Some80(u64);

impl Clients for Some80 {
    fn population(&self) -> u64 {
        self.0
    }
    fn dim(&self) -> usize {
        DIM
    }
    fn ask(&self, call: &Call<'_>, replies: &Replies<'_>) -> Result<(), EngineError> {
        // Replies come in any order.
        for (place, client) in call.cohort.iter().enumerate().rev() {
            if client % 5 != 0 {
                assert_eq!(replies.add(place, &update(*client, call.weights)), Reply::Added);
            }
        }
        Ok(())
    }
}

fn params(batch: u64, rounds: u64) -> PlanParams {
    let mut params = PlanParams::default();
    params.privacy.clip_norm = Some(0.5);
    params.privacy.noise_multiplier = Some(0.8);
    params.train.batch = Some(batch);
    params.train.steps = Some(rounds);
    params.train.learning_rate = Some(1.0);
    params.train.seed = Some(11);
    params
}

fn start() -> Start {
    Start { weights: vec![0.0; DIM], model: String::new(), clients: String::new() }
}

fn plan(params: &PlanParams, population: u64) -> Plan {
    federated::plan(params, population, DIM).unwrap()
}

fn server(folder: &Path, params: &PlanParams, population: u64) -> Server {
    Server::create(folder, plan(params, population), start()).unwrap()
}

fn reply_all(round: &mut Round, but: impl Fn(u32) -> bool) {
    for client in round.cohort().to_vec() {
        if !but(client) {
            let update = update(client, round.weights());
            assert_eq!(round.add(client, &update), Reply::Added);
        }
    }
}

fn ledger(folder: &Path) -> Ledger {
    Ledger::read(&folder.join("ledger.jsonl")).unwrap()
}

#[test]
fn rounds_and_callbacks_give_the_same_bits() {
    let parent = tempfile::tempdir().unwrap();
    let certified = Mechanism::GeodpCertified(Default::default());
    let cases = [
        (Mechanism::Dp, OptimizerKind::Sgd, ClipKind::Flat),
        (
            Mechanism::Geodp { beta: 0.1 },
            OptimizerKind::Momentum { momentum: 0.9 },
            ClipKind::AutoS,
        ),
        (certified, OptimizerKind::Adam(Moments::default()), ClipKind::Psac),
    ];
    for (at, (mechanism, optimizer, clip)) in cases.into_iter().enumerate() {
        let mut params = params(15, 6);
        params.privacy.mechanism = mechanism;
        params.privacy.clip = clip;
        params.train.optimizer = Some(optimizer);
        let folder = parent.path().join(format!("called-{at}"));
        let engine = ClientEngine::new(Some80(60));
        let run = Run::create_with(&folder, plan(&params, 60), engine).unwrap();
        let ended = run.execute(&mut Silent, &mut Silent, &false.into()).unwrap();
        let Ended::Finished(called) = ended else { panic!("{ended:?}") };

        let folder = parent.path().join(format!("served-{at}"));
        let mut server = server(&folder, &params, 60);
        while let Some(mut round) = server.begin().unwrap() {
            reply_all(&mut round, |client| client % 5 == 0);
            server.finish(round).unwrap();
        }
        let served = server.conclude().unwrap();
        assert!(called.weights.iter().all(|w| w.is_finite() && *w != 0.0));
        assert_eq!(served.weights, called.weights, "{mechanism:?}");
        assert_eq!(served.statement.claims, called.statement.claims);
        assert_eq!(ledger(&folder).steps(), 6);
        assert!(!folder.join("noise.key").exists() && folder.join("report.html").exists());
    }
}

#[test]
fn accounting_equals_events_composed_by_hand() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    let mut params = params(50, 7);
    params.privacy.delta = Some(1e-4);
    let mut server = server(&folder, &params, 1000);
    while let Some(round) = server.begin().unwrap() {
        server.finish(round).unwrap();
    }
    let statement = server.conclude().unwrap().statement;
    let release = Event::sampled_gaussian(0.05, 0.8);
    let ledger = ledger(&folder);
    let charged: Vec<_> = ledger.records.iter().map(|r| (&r.event, r.count)).collect();
    assert_eq!(charged, vec![(&release, 1); 7], "each round is charged, alone");
    let mut by_hand = Account::new(ledger.header.terms);
    by_hand.charge(&release, 7).unwrap();
    let claim = by_hand.claim().unwrap();
    assert_eq!(statement.claims[0], claim);
    let mut plain = PldAccountant::new(Adjacency::ZeroOut);
    geodp_account::Accountant::compose(&mut plain, &release, 7).unwrap();
    let epsilon = geodp_account::Accountant::epsilon(&plain, 1e-4).unwrap();
    assert!((claim.upper() / epsilon.upper - 1.0).abs() < 1e-3, "{claim}");
    let text = statement.to_string();
    assert!(text.contains("client with all its data") && text.contains("number of clients"));
    assert_eq!((statement.records, statement.batch, statement.unit.as_str()), (1000, 50, "client"));
}

/// The first round of a server with this seed, released after `act`.
fn first_release(params: &PlanParams, population: u64, act: impl FnOnce(&mut Round)) -> Vec<f32> {
    let parent = tempfile::tempdir().unwrap();
    let mut server = server(&parent.path().join("run"), params, population);
    let mut round = server.begin().unwrap().unwrap();
    act(&mut round);
    server.finish(round).unwrap();
    server.weights().to_vec()
}

fn distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt()
}

/// With one seed the noise is the same, so two releases differ by what the replies differ.
#[test]
fn no_reply_moves_a_release_by_more_than_its_share() {
    let (params, population) = (params(10, 1), 30);
    let share = 0.5 / 10.0;
    let one_less = first_release(&params, population, |round| {
        let last = *round.cohort().last().unwrap();
        reply_all(round, |client| client == last);
    });
    let with = |update: &[f32], expected: Reply| {
        first_release(&params, population, |round| {
            let last = *round.cohort().last().unwrap();
            reply_all(round, |client| client == last);
            assert_eq!(round.add(last, update), expected);
        })
    };
    for size in [1e30_f32, -1e30, 1e4, 3e38] {
        let moved = distance(&with(&[size; DIM], Reply::Added), &one_less);
        assert!((moved / share - 1.0).abs() < 1e-5, "an update of {size} moved it by {moved}");
    }
    for nonsense in [&[f32::NAN; DIM][..], &[f32::INFINITY, 0.0, 0.0, 0.0, 0.0], &[1.0; 4], &[]] {
        assert_eq!(with(nonsense, Reply::Unusable), one_less);
    }
    // Nor by replying often, or without having been asked.
    let again = first_release(&params, population, |round| {
        let last = *round.cohort().last().unwrap();
        reply_all(round, |client| client == last);
        let first = round.cohort()[0];
        let stranger = (0..30).find(|client| !round.cohort().contains(client)).unwrap();
        assert_eq!(round.add(first, &[9.0; DIM]), Reply::Twice);
        assert_eq!(round.add(stranger, &[9.0; DIM]), Reply::NotInCohort);
        assert_eq!(round.add(u32::MAX, &[9.0; DIM]), Reply::NotInCohort);
        assert_eq!(round.replies(), round.cohort().len() - 1);
    });
    assert_eq!(again, one_less);
}

/// The sum is over B = q·N, however many reply: who is missing takes away what it would have given.
#[test]
fn dropouts_take_away_their_own_share_and_nothing_else() {
    let (params, population) = (params(10, 1), 30);
    let all = first_release(&params, population, |round| reply_all(round, |_| false));
    let mut missing = vec![0.0_f64; DIM];
    let half = first_release(&params, population, |round| {
        for client in round.cohort().iter().filter(|client| *client % 2 == 0) {
            let update = update(*client, round.weights());
            let norm = update.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
            let weight = (0.5 / norm).min(1.0) / 10.0;
            missing.iter_mut().zip(&update).for_each(|(m, x)| *m += weight * f64::from(*x));
        }
        reply_all(round, |client| client % 2 == 0);
    });
    assert!(missing.iter().any(|m| m.abs() > 0.01), "{missing:?}");
    for ((all, half), missing) in all.iter().zip(&half).zip(&missing) {
        assert!((f64::from(all - half) - missing).abs() < 1e-6, "{all} {half} {missing}");
    }
}

#[test]
fn an_empty_cohort_is_released_as_noise() {
    let parent = tempfile::tempdir().unwrap();
    for mechanism in [Mechanism::Dp, Mechanism::Geodp { beta: 0.1 }] {
        let mut params = params(1, 12);
        params.privacy.mechanism = mechanism;
        let mut server = server(&parent.path().join(format!("{mechanism}")), &params, 3);
        let (mut empty, mut silent) = (0, 0);
        while let Some(round) = server.begin().unwrap() {
            let before = server.weights().to_vec();
            if round.cohort().is_empty() {
                empty += 1
            } else {
                silent += 1
            }
            server.finish(round).unwrap();
            let after = server.weights();
            assert!(after.iter().all(|w| w.is_finite()));
            assert!(distance(&before, after) > 0.0, "nobody is there, and it shows");
        }
        assert!(empty > 0 && silent > 0);
    }
}

/// Wherever the server dies, the round is paid once, and what is released is the replay alone.
#[test]
fn a_server_killed_between_charge_and_release_pays_once() {
    let parent = tempfile::tempdir().unwrap();
    let (params, population) = (params(12, 4), 40);
    let whole = parent.path().join("whole");
    let mut server_whole = server(&whole, &params, population);
    while let Some(mut round) = server_whole.begin().unwrap() {
        reply_all(&mut round, |client| client % 3 == 0);
        server_whole.finish(round).unwrap();
    }
    let folder = parent.path().join("killed");
    drop(server(&folder, &params, population));
    for number in 0..4 {
        // Killed after the charge, with replies that no one will ever see.
        let resume = || Server::resume(&folder, plan(&params, population), start()).unwrap();
        let mut killed = resume();
        let mut round = killed.begin().unwrap().unwrap();
        reply_all(&mut round, |_| false);
        let cohort = round.cohort().to_vec();
        drop((round, killed));
        assert_eq!(ledger(&folder).steps(), number + 1);
        let mut resumed = resume();
        assert_eq!((resumed.rounds_done(), resumed.weights().len()), (number, DIM));
        let abandoned = resumed.begin().unwrap().unwrap();
        let mut round = resumed.begin().unwrap().unwrap();
        assert_eq!((round.number(), round.cohort()), (number, &cohort[..]));
        reply_all(&mut round, |client| client % 3 == 0);
        resumed.finish(round).unwrap();
        assert_eq!(ledger(&folder).steps(), number + 1, "begun three times, charged once");
        assert_eq!(ledger(&folder).records.len() as u64, number + 1);
        let stale = resumed.finish(abandoned).unwrap_err().to_string();
        assert!(stale.contains("cannot be finished"), "{stale}");
    }
    let resumed = Server::resume(&folder, plan(&params, population), start()).unwrap();
    assert_eq!(resumed.weights(), server_whole.weights());
    assert_eq!(resumed.conclude().unwrap().statement, server_whole.conclude().unwrap().statement);
}

/// A disk that fails in the middle of a release: the server stops, and only the folder is believed.
#[test]
fn after_a_failed_write_a_server_must_be_resumed() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    let (params, population) = (params(12, 4), 40);
    let mut failing = server(&folder, &params, population);
    let mut round = failing.begin().unwrap().unwrap();
    reply_all(&mut round, |_| false);
    // A folder in the place of the metrics: the checkpoint is written, the line after it is not.
    std::fs::create_dir(folder.join("metrics.jsonl")).unwrap();
    assert!(failing.finish(round).is_err());
    let refused = failing.begin().unwrap_err().to_string();
    assert!(refused.contains("resume"), "{refused}");
    drop(failing);
    std::fs::remove_dir(folder.join("metrics.jsonl")).unwrap();
    let mut resumed = Server::resume(&folder, plan(&params, population), start()).unwrap();
    assert_eq!(resumed.rounds_done(), 1, "the checkpoint was written: that round is released");
    assert_eq!(resumed.begin().unwrap().unwrap().number(), 1);
    assert_eq!(ledger(&folder).steps(), 2);
}

#[test]
fn the_limit_stops_before_the_round_that_would_pass_it() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    let mut params = params(10, 500);
    (params.privacy.epsilon_limit, params.privacy.delta) = (Some(3.0), Some(1e-4));
    let plan = plan(&params, 100);
    let rounds = plan.steps();
    let after = |n| plan.protection().claim_after(n).unwrap().unwrap().upper();
    assert!(rounds > 2 && after(rounds) <= 3.0 && after(rounds + 1) > 3.0);
    let mut server = Server::create(&folder, plan.clone(), start()).unwrap();
    for _ in 0..rounds {
        let round = server.begin().unwrap().unwrap();
        server.finish(round).unwrap();
        assert!(server.claim().unwrap().upper() <= 3.0);
    }
    assert!(server.begin().unwrap().is_none());
    drop(server);
    let mut server = Server::resume(&folder, plan.clone(), start()).unwrap();
    assert!(server.begin().unwrap().is_none() && ledger(&folder).steps() == rounds);
    assert!(server.conclude().unwrap().statement.claims[0].upper() <= 3.0);
}

/// Sizes vary as a binomial does: 7.5 ± 5.5 standard errors of 1.19 (false-alarm rate 4e-8).
#[test]
fn cohorts_are_drawn_by_independent_coins() {
    let parent = tempfile::tempdir().unwrap();
    let mut server = server(&parent.path().join("run"), &params(10, 80), 40);
    let (mut squares, mut count) = (0.0, 0.0);
    while let Some(round) = server.begin().unwrap() {
        squares += (round.cohort().len() as f64 - 10.0).powi(2);
        count += 1.0;
        server.finish(round).unwrap();
    }
    let variance = squares / count;
    assert!((variance - 7.5).abs() < 5.5 * 1.19, "{variance}");
}

#[test]
fn what_cannot_be_a_round_of_clients_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let refused = |change: fn(&mut PlanParams)| {
        let mut params = params(10, 3);
        change(&mut params);
        federated::plan(&params, 40, DIM).unwrap_err().to_string()
    };
    assert!(refused(|p| p.privacy.sampling = Sampling::Shuffle).contains("fixed size"));
    let floats = refused(|p| p.privacy.arithmetic = Some(Arithmetic::FloatingPoint));
    assert!(floats.contains("whole numbers"), "{floats}");
    assert!(refused(|p| p.privacy.importance = Some(Default::default())).contains("importance"));
    assert!(refused(|p| p.privacy.select = Some(Default::default())).contains("select"));
    assert!(refused(|p| p.train.measure = Some(3)).contains("measure"));
    assert!(refused(|p| p.train.checkpoint_every = Some(2)).contains("checkpoint"));
    // A plan that was not made for clients may have longer blocks: the run refuses those as well.
    let engine = ClientEngine::new(Some80(40));
    let mut long = params(10, 3);
    long.train.checkpoint_every = Some(3);
    let plan = long.check(engine.facts()).unwrap();
    let error = Run::create_with(&parent.path().join("run"), plan.clone(), engine).err().unwrap();
    assert!(error.to_string().contains("checkpoint_every = 1"), "{error}");
    assert!(Server::create(&parent.path().join("run"), plan, start()).is_err());
    assert!(!parent.path().join("run").exists(), "nothing was made");
}

/// Secure aggregation adds modulo 2⁶⁴: clients put their clipped update on the grid and add masks that
/// cancel. The server sees random words, and their sum is the sum, exactly.
#[test]
fn masked_integers_add_up_exactly() {
    let (clients, grid) = (50_usize, Grid::new(0.5).unwrap());
    let on_grid = |client: usize| {
        let mut n = vec![0_i64; DIM];
        let update: Vec<f32> = update(client as u32, &[0.0; DIM]).iter().map(|x| 9.0 * x).collect();
        grid.add_gradient(&update, |norm| -(0.5 / norm).min(1.0), &mut n);
        n
    };
    let mut plain = vec![0_i64; DIM];
    let mut masked: Vec<Vec<u64>> = Vec::new();
    for client in 0..clients {
        let n = on_grid(client);
        plain.iter_mut().zip(&n).for_each(|(sum, n)| *sum += n);
        masked.push(n.into_iter().map(|n| n as u64).collect());
    }
    // Every pair shares a secret word for each coordinate; one adds it, the other subtracts it.
    let mut words = geodp_nn::SplitMix64::new(5);
    for first in 0..clients {
        for second in first + 1..clients {
            let (before, after) = masked.split_at_mut(second);
            for (one, other) in before[first].iter_mut().zip(&mut after[0]) {
                let mask = words.next_u64();
                *one = one.wrapping_add(mask);
                *other = other.wrapping_sub(mask);
            }
        }
    }
    let small = masked.iter().flatten().filter(|word| (**word as i64).abs() < 1 << 31).count();
    assert!(small < 3, "{small} masked words look like an update");
    let sum = masked.iter().fold(vec![0_u64; DIM], |mut sum, words| {
        sum.iter_mut().zip(words).for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
        sum
    });
    let unmasked: Vec<i64> = sum.into_iter().map(|word| word as i64).collect();
    assert_eq!(unmasked, plain);
    // And it is the sum that a round of the same clients adds up.
    struct Nine;
    impl Clients for Nine {
        fn population(&self) -> u64 {
            50
        }
        fn dim(&self) -> usize {
            DIM
        }
        fn ask(&self, call: &Call<'_>, replies: &Replies<'_>) -> Result<(), EngineError> {
            for (place, client) in call.cohort.iter().enumerate() {
                let nine: Vec<f32> =
                    update(*client, call.weights).iter().map(|x| 9.0 * x).collect();
                replies.add(place, &nine);
            }
            Ok(())
        }
    }
    let all: Vec<u32> = (0..clients as u32).collect();
    let mut sum = vec![0; DIM];
    let flat = |_, norm: f64| (0.5 / norm).min(1.0);
    let (engine, choice) = (ClientEngine::new(Nine), RowChoice::default());
    let stepped = engine.at_step(choice).unwrap();
    stepped.exact_sum(&[0.0; DIM], &all, &flat, grid, &mut sum).unwrap();
    assert_eq!(sum, plain);
}
