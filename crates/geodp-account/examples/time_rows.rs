//! Times ε(δ) of sampled Gaussians for benchmarks/accounting: reads `q sigma steps delta` lines,
//! writes one JSON object a line. Every repetition starts from a fresh accountant.

use geodp_account::{Accountant, Adjacency, Event, PldAccountant};
use std::io::BufRead;
use std::time::Instant;

const REPETITIONS: usize = 7;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in std::io::stdin().lock().lines() {
        let numbers = line?.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
        let [rate, sigma, steps, delta] = numbers[..] else {
            return Err("a line needs four numbers: q sigma steps delta".into());
        };
        let mut seconds = Vec::with_capacity(REPETITIONS);
        let mut epsilon = None;
        for _ in 0..REPETITIONS {
            let start = Instant::now();
            let mut accountant = PldAccountant::new(Adjacency::AddRemove);
            accountant.compose(&Event::sampled_gaussian(rate, sigma), steps as u64)?;
            epsilon = Some(accountant.epsilon(delta)?);
            seconds.push(start.elapsed().as_secs_f64());
        }
        seconds.sort_by(f64::total_cmp);
        let result = serde_json::json!({ "epsilon": epsilon, "seconds": seconds[REPETITIONS / 2] });
        println!("{result}");
    }
    Ok(())
}
