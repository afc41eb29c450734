//! What one more process costs that holds no records: the messages of a step beside the step itself.
//!
//!     cargo build --release -p geodp-mpi --features mpi --example idle_rank
//!     mpirun -n 2 target/release/examples/idle_rank [BATCH]
//!
//! Rank 0 sums a batch of MNIST through the CNN on one thread, alone and with everything that a step sends
//! (request, weights, integer sums, answer) to a rank that has nothing to add. Turns alternate, and the
//! medians are compared.

use geodp::config::{ModelConfig, RunConfig};
use geodp::engine::{Constant, Engine};
use geodp::run::Configured;
use geodp::team::Link;
use geodp_mpi::{Seat, join};
use geodp_nn::Grid;
use std::time::Instant;

const TURNS: usize = 15;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome<()> {
    match &join()? {
        Seat::Alone => Err("start it by mpirun -n 2".into()),
        Seat::Worker(link) => serve(&**link),
        Seat::Leader(leader) => {
            let batch = std::env::args().nth(1).map_or(Ok(4096), |batch| batch.parse())?;
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
            pool.install(|| measure(leader.link(), batch))
        }
    }
}

/// Answers until an empty request comes.
fn serve(link: &dyn Link) -> Outcome<()> {
    loop {
        let request = link.receive(0)?;
        let Some(bytes) = request.first_chunk() else { return Ok(()) };
        let dim = u64::from_le_bytes(*bytes) as usize;
        link.broadcast(&mut vec![0.0; dim])?;
        link.sum_to_first(&mut vec![0; dim])?;
        link.send(0, &[0; 33])?;
    }
}

fn measure(link: &dyn Link, batch: u32) -> Outcome<()> {
    let mut config = RunConfig::mnist().model(ModelConfig::Cnn);
    config.features = None;
    let engine = Configured::load(config, &|_, _| ())?;
    let mut weights = engine.initial_weights();
    let units: Vec<u32> = (0..batch).collect();
    let (grid, mut sum) = (Grid::new(0.1)?, vec![0_i64; weights.len()]);
    let mut step = |with: bool| -> Outcome<f64> {
        let start = Instant::now();
        if with {
            link.send(1, &(weights.len() as u64).to_le_bytes())?;
            link.broadcast(&mut weights)?;
        }
        engine.exact_sum(&weights, &units, &Constant(1e-3), grid, &mut sum)?;
        if with {
            link.sum_to_first(&mut sum)?;
            link.receive(1)?;
        }
        Ok(start.elapsed().as_secs_f64())
    };
    step(true)?;
    let (mut alone, mut with) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        alone.push(step(false)?);
        with.push(step(true)?);
    }
    link.send(1, &[])?;
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[TURNS / 2]
    };
    let (alone, with) = (median(&mut alone), median(&mut with));
    println!(
        "CNN, B = {batch}, one thread: {:.2} ms alone, {:.2} ms with an idle rank: {:+.2} %",
        1e3 * alone,
        1e3 * with,
        100.0 * (with / alone - 1.0)
    );
    Ok(())
}
