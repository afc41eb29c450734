//! A private training in five lines: the paper's CNN on MNIST at (ε = 3, δ = 1e-5).
//!
//! `cargo run --release -p geodp --example train_mnist`

use geodp::RunConfig;

fn main() -> Result<(), geodp::Error> {
    let config = RunConfig::mnist().epsilon(3.0).epochs(5);
    let done = geodp::train(config, "runs/mnist")?;
    println!("{}", done.statement);
    Ok(())
}
