//! The questions people ask an accountant, each in a few lines.
//!
//! `cargo run -p geodp-account --example questions`

use geodp_account::{
    Accountant, Adjacency, Budget, Error, Event, PldAccountant, RdpAccountant, calibrate,
    rounded_up,
};

const DELTA: f64 = 1e-5;
const NEIGHBOURS: Adjacency = Adjacency::AddRemove;

fn main() -> Result<(), Error> {
    let step = Event::sampled_gaussian(0.01, 1.0);

    // What does a training cost? A bracket: the truth lies inside, the upper end is a bound.
    let mut tight = PldAccountant::new(NEIGHBOURS).with_width(1e-4)?;
    tight.compose(&step, 1000)?;
    let epsilon = tight.epsilon(DELTA)?;
    println!("1000 steps: certified ε ≤ {}", rounded_up(epsilon.upper));

    // Which neighbours decide it, those with a record more or those with one less?
    let (remove, add) = tight.epsilon_by_direction(DELTA)?;
    println!("  by removing {}, by adding {}", rounded_up(remove.upper), rounded_up(add.upper));

    // What would the Rényi bound say, at which order, and were the orders enough?
    let orders = (2..=64).map(f64::from).collect();
    let mut renyi = RdpAccountant::with_orders(NEIGHBOURS, orders)?;
    renyi.compose(&step, 1000)?;
    let best = renyi.optimal_order(DELTA)?;
    println!("  by Rényi orders: ε ≤ {} at α = {}", rounded_up(best.epsilon), best.order);
    assert!(!best.at_end && best.epsilon >= epsilon.lower);

    // How much noise does a target want?
    let run = |sigma| Event::sampled_gaussian(0.01, sigma).repeated(1000);
    let sigma = calibrate::noise_multiplier(1.0, DELTA, NEIGHBOURS, run)?;
    println!("ε ≤ 1 wants σ = {}", rounded_up(sigma));

    // A hard stop: releases of different kinds, asked for one by one until one does not fit.
    let mut budget = Budget::new(1.0, DELTA, NEIGHBOURS)?;
    let mut blocks = 0;
    while budget.spend(&step, 50)? {
        blocks += 1;
    }
    let spent = budget.spent()?;
    println!("ε ≤ 1 pays for {} steps: {} spent", 50 * blocks, rounded_up(spent.upper));
    Ok(())
}
