//! Times and prints the table of golden rows, for the benchmark script.
use geodp_account::{Accountant, Adjacency, Event, PldAccountant, RdpAccountant};
use std::time::Instant;

fn main() -> Result<(), geodp_account::Error> {
    let rows = [
        (0.04, 1.5, 2250, 1e-5),
        (0.01, 1.0, 1000, 1e-5),
        (0.005, 0.8, 1000, 1e-6),
        (256.0 / 60000.0, 1.1, 14062, 1e-5),
        (0.1, 3.0, 512, 1e-6),
        (0.01, 0.5, 200, 1e-5),
        (0.02, 2.0, 5000, 1e-5),
        (0.5, 10.0, 100, 1e-6),
        (0.001, 0.6, 20000, 1e-6),
        (0.01, 0.7, 120, 1e-5),
        (0.001, 1.0, 1_000_000, 1e-6),
        (0.0001, 0.8, 100_000_000, 1e-8),
    ];
    for (q, sigma, steps, delta) in rows {
        let start = Instant::now();
        let mut pld = PldAccountant::new(Adjacency::AddRemove);
        pld.compose(&Event::sampled_gaussian(q, sigma), steps)?;
        let all = pld.epsilon(delta)?;
        let took = start.elapsed();
        let (remove, add) = pld.epsilon_by_direction(delta)?;
        let mut rdp = RdpAccountant::new(Adjacency::AddRemove);
        rdp.compose(&Event::sampled_gaussian(q, sigma), steps)?;
        println!(
            "{q:.5} {sigma} {steps} {delta:e}: {all} width {:.4}% rdp {:.6} remove {remove} add {add} {took:?}",
            100.0 * all.width() / all.upper,
            rdp.epsilon(delta)?.upper
        );
    }
    Ok(())
}
