//! Trains the paper's CNN on MNIST with DP-SGD at (ε = 3, δ = 1e-5), from Rust, with a line for every measurement.
//!
//! `cargo run --release -p geodp --example mnist`

use geodp::RunConfig;
use geodp::run::{BlockMetrics, Ended, Run};
use geodp::watch::{Observer, Silent};

/// Prints a line whenever the test set was measured.
struct Lines;

impl Observer for Lines {
    fn on_block(&mut self, metrics: &BlockMetrics) {
        if let (Some(test), Some(epsilon)) = (metrics.test, &metrics.epsilon) {
            println!("epoch {:5.1}  accuracy {:.4}  {epsilon}", metrics.epoch, test.accuracy);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = RunConfig::mnist().epsilon(3.0).epochs(5);
    let folder = tempfile::tempdir()?;
    let run = Run::create(&folder.path().join("run"), config)?;
    if let Ended::Finished(finished) = run.execute(&mut Silent, &mut Lines, &false.into())? {
        print!("{}", finished.statement);
    }
    Ok(())
}
