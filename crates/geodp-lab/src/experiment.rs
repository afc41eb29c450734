//! What every experiment is: a list of independent cells, a way to run one, a way to draw them.
//!
//! [`run`] works through the cells that the store lacks, in the order the experiment gives them
//! (which puts first what a reader wants first), and keeps each as it is done. Drawing reads the
//! store alone, so a page can be made at any time from whatever is there.

use crate::Error;
use crate::options::Options;
use crate::store::{Record, Store};
use geodp_report::{Figure, Section};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A piece of work that is kept when it is done.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Its name: a file name without its ending.
    pub key: String,
    /// What will be run, for the record.
    pub config: Value,
    /// Where its randomness comes from.
    pub seed: u64,
    /// Seconds it should take on two cores.
    pub expected_seconds: f64,
}

/// One figure or table of the paper.
pub trait Experiment {
    /// Its name on the command line.
    fn id(&self) -> &'static str;
    /// What it is, in a line.
    fn title(&self) -> &'static str;
    /// All cells, the most wanted first.
    fn cells(&self, options: &Options) -> Vec<Cell>;
    /// Runs one.
    ///
    /// # Errors
    /// Whatever stops it; [`Error::Interrupted`] if the user does.
    fn run(&self, cell: &Cell, desk: &mut Desk<'_>) -> Result<Value, Error>;
    /// Draws what the store has.
    ///
    /// # Errors
    /// A store that cannot be read.
    fn draw(&self, store: &Store) -> Result<Option<Drawn>, Error>;
}

/// What an experiment adds to the page, and the files beside it.
#[derive(Debug)]
pub struct Drawn {
    /// Its section.
    pub section: Section,
    /// Names and labels of its figures, for links from the claims.
    pub figures: Vec<(String, String)>,
    /// File names and contents: CSV and SVG.
    pub files: Vec<(String, String)>,
    /// Cells that the settings ask for and the store lacks.
    pub missing: usize,
}

impl Drawn {
    /// A section with nothing in it.
    pub fn new(title: &str) -> Self {
        let section = Section::new(title);
        Self { section, figures: Vec::new(), files: Vec::new(), missing: 0 }
    }

    /// Adds a figure with its caption, its SVG and its CSV. `name` is that of its files and links,
    /// `label` what readers of the paper know it by.
    #[must_use]
    pub fn figure(mut self, name: &str, label: &str, figure: &dyn Figure, caption: String) -> Self {
        self.section = self.section.named_figure(name, label, figure, caption);
        self.figures.push((name.to_owned(), label.to_owned()));
        self.files.push((format!("{name}.svg"), figure.svg().to_string()));
        self.files.push((format!("{name}.csv"), figure.csv()));
        self
    }

    /// Changes the section.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(Section) -> Section) -> Self {
        self.section = change(self.section);
        self
    }
}

/// Hears how a run goes on.
pub trait Observer {
    /// A cell begins: its place in the cells to run, and the seconds expected for what is left.
    fn on_cell(&mut self, cell: &Cell, number: usize, of: usize);
    /// The share of the running cell that is done.
    fn on_progress(&mut self, share: f64);
    /// The cell is done and kept.
    fn on_done(&mut self, cell: &Cell, took: Duration);
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn on_cell(&mut self, _: &Cell, _: usize, _: usize) {}
    fn on_progress(&mut self, _: f64) {}
    fn on_done(&mut self, _: &Cell, _: Duration) {}
}

/// What a running cell has around it.
pub struct Desk<'a> {
    /// Finished cells.
    pub store: &'a Store,
    /// The user's choices.
    pub options: &'a Options,
    observer: &'a mut dyn Observer,
    stop: &'a AtomicBool,
}

impl Desk<'_> {
    /// Reports progress, and stops the cell if the user asked for it.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn tick(&mut self, share: f64) -> Result<(), Error> {
        self.observer.on_progress(share);
        if self.stop.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// Cells of an experiment that the store lacks.
///
/// # Errors
/// A store that cannot be read.
pub fn missing(
    experiment: &dyn Experiment,
    options: &Options,
    store: &Store,
) -> Result<Vec<Cell>, Error> {
    let mut left = Vec::new();
    for cell in experiment.cells(options) {
        // A cell of an older version that measured something else is not this cell.
        let same = |done: &Record| done.config == cell.config;
        if !store.read(experiment.id(), &cell.key)?.is_some_and(|done| same(&done)) {
            left.push(cell);
        }
    }
    Ok(left)
}

/// Runs the cells that the store lacks and keeps each when it is done.
///
/// # Errors
/// The first cell's that fails; those before it are kept.
pub fn run(
    experiment: &dyn Experiment,
    options: &Options,
    store: &Store,
    observer: &mut dyn Observer,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let cells = missing(experiment, options, store)?;
    for (at, cell) in cells.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        observer.on_cell(cell, at + 1, cells.len());
        let started = Instant::now();
        let result =
            experiment.run(cell, &mut Desk { store, options, observer: &mut *observer, stop })?;
        store.write(&Record {
            experiment: experiment.id().to_owned(),
            key: cell.key.clone(),
            config: cell.config.clone(),
            seed: cell.seed,
            result,
            seconds: started.elapsed().as_secs_f64(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })?;
        observer.on_done(cell, started.elapsed());
    }
    Ok(())
}
