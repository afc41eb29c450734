//! Every figure and table of "Analyzing and Optimizing Perturbation of DP-SGD Geometrically", by one
//! command each, with a verdict for every claim.
//!
//! An [`Experiment`] lists jobs, runs one, and draws finished ones; the [`Store`] keeps each as a cell
//! in JSON; [`draw`] makes CSV, SVG and one page from whatever cells exist. A new experiment is one
//! file and its line in [`catalogue`].

pub mod accuracy;
pub mod certified;
pub mod claims;
pub mod direction;
pub mod equal_epsilon;
mod error;
pub mod experiment;
pub mod federated;
pub mod logistic;
pub mod model;
pub mod options;
mod page;
mod run;
pub mod runtime;
pub mod stats;
pub mod store;
mod stream;
pub mod tables;
pub mod theory;

pub use error::Error;
pub use experiment::{AnyExperiment, Cell, CellContext, CellObserver, Experiment};
pub use options::{Options, Size};
pub use page::draw;
pub use store::Store;

/// Every experiment, in the order of the page.
pub fn catalogue() -> Vec<Box<dyn AnyExperiment>> {
    use direction::Direction;
    vec![
        Box::new(Direction::figure1()),
        Box::new(Direction::figure3()),
        Box::new(Direction::figure4()),
        Box::new(logistic::Logistic::default()),
        Box::new(runtime::Runtime),
        Box::new(tables::Table::two()),
        Box::new(tables::Table::three()),
        Box::new(tables::Table::two_in_small_steps()),
        Box::new(tables::Table::three_in_small_steps()),
        Box::new(tables::Table::three_trained()),
        Box::new(tables::Table::equal_privacy()),
        Box::new(theory::Theory),
        Box::new(certified::Certified::default()),
        Box::new(equal_epsilon::EqualEpsilon::default()),
        Box::new(accuracy::Accuracy::default()),
        Box::new(federated::Federated::default()),
        Box::new(claims::Claims),
    ]
}

/// Makes the store ready for the experiment's cells under these options.
///
/// # Errors
/// Options that make no sense; cells that are there although `resume` is false, or that were made
/// with other options.
pub fn begin(
    experiment: &dyn AnyExperiment,
    options: &Options,
    store: &Store,
    resume: bool,
) -> Result<(), Error> {
    options.check()?;
    let provenance = format!(
        "geodp {}, {}: geodp lab run {}{}",
        env!("CARGO_PKG_VERSION"),
        machine(),
        experiment.id(),
        options.flags()
    );
    store.begin(experiment.id(), &options.settings(&provenance), resume)
}

/// The processor and how many threads are used of it.
fn machine() -> String {
    let threads = rayon::current_num_threads();
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or(std::env::consts::ARCH, |(_, name)| name.trim());
    format!("{model}, {threads} threads")
}
