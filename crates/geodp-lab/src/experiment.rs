//! What every experiment is: a list of independent jobs, a way to run one, a way to draw the pairs of
//! jobs and results that are finished.
//!
//! An [`Experiment`] has types of its own for its jobs and results; [`AnyExperiment`] erases them, by
//! one implementation for all, so that a list can hold every experiment. A job becomes a [`Cell`] when
//! it is kept: its key is the file's name, its config says what was run.

use crate::Error;
use crate::options::Options;
use crate::run::{Runner, missing_jobs};
use crate::store::{Settings, Store};
use geodp_report::{Figure, Section};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How a job is kept and announced.
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
    /// One piece of work.
    type Job;
    /// What a job gives; kept as JSON.
    type Result: Serialize + DeserializeOwned;

    /// Whether there is something to draw before the experiment was begun.
    const DRAWN_WITHOUT_CELLS: bool = false;

    /// Its name on the command line.
    fn id(&self) -> &'static str;
    /// What it is, in a line.
    fn title(&self) -> &'static str;
    /// All jobs, the most wanted first, each after those whose results it needs.
    fn jobs(&self, options: &Options) -> Vec<Self::Job>;
    /// How a job is kept.
    fn cell(&self, job: &Self::Job, options: &Options) -> Cell;
    /// Runs one job.
    ///
    /// # Errors
    /// Whatever stops it; [`Error::Interrupted`] if the user does.
    fn run(&self, job: &Self::Job, context: &mut CellContext<'_>) -> Result<Self::Result, Error>;
    /// Draws what is finished.
    ///
    /// # Errors
    /// A store that cannot be read.
    fn draw(&self, finished: &FinishedOf<Self>, page: &PageContext<'_>) -> Result<Drawn, Error>;
}

/// The finished jobs of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished<J, R> {
    /// How it was run; `None` if it was not begun.
    pub settings: Option<Settings>,
    /// Each finished job with its result, in the experiment's order.
    pub pairs: Vec<(J, R)>,
    /// Jobs that the settings ask for, finished or not.
    pub wanted: usize,
}

impl<J, R> Default for Finished<J, R> {
    fn default() -> Self {
        Self { settings: None, pairs: Vec::new(), wanted: 0 }
    }
}

impl<J, R> Finished<J, R> {
    /// All results.
    pub fn results(&self) -> impl Iterator<Item = &R> {
        self.pairs.iter().map(|(_, result)| result)
    }
}

/// [`Finished`] with an experiment's own types.
pub type FinishedOf<E> = Finished<<E as Experiment>::Job, <E as Experiment>::Result>;

/// What is drawn around an experiment.
pub struct PageContext<'a> {
    /// Every experiment's cells.
    pub store: &'a Store,
    /// Labels of the figures drawn so far, by name, for links to them.
    pub labels: &'a BTreeMap<String, String>,
}

/// What an experiment adds to the page, and the files beside it.
#[derive(Debug)]
pub struct Drawn {
    /// Its section.
    pub section: Section,
    /// Whether the section stands before all others.
    pub leads: bool,
    /// Names and labels of its figures, for links from the claims.
    pub figures: Vec<(String, String)>,
    /// File names and contents: CSV and SVG.
    pub files: Vec<(String, String)>,
}

impl Drawn {
    /// A section with nothing in it.
    pub fn new(title: &str) -> Self {
        let section = Section::new(title);
        Self { section, leads: false, figures: Vec::new(), files: Vec::new() }
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
pub trait CellObserver {
    /// A cell begins: its place in the cells to run.
    fn on_cell(&mut self, cell: &Cell, number: usize, of: usize);
    /// The share of the running cell that is done.
    fn on_progress(&mut self, share: f64);
    /// The cell is done and kept.
    fn on_done(&mut self, cell: &Cell, took: Duration);
}

/// What a running job has around it.
pub struct CellContext<'a> {
    /// Finished cells.
    pub store: &'a Store,
    /// The user's choices.
    pub options: &'a Options,
    observer: &'a mut dyn CellObserver,
    stop: &'a AtomicBool,
}

impl<'a> CellContext<'a> {
    pub(crate) fn new(
        store: &'a Store,
        options: &'a Options,
        observer: &'a mut dyn CellObserver,
        stop: &'a AtomicBool,
    ) -> Self {
        Self { store, options, observer, stop }
    }

    /// Reports progress, and stops the job if the user asked for it.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn tick(&mut self, share: f64) -> Result<(), Error> {
        self.observer.on_progress(share);
        if self.stop.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// An [`Experiment`] without its types: what the command line and the page work with.
pub trait AnyExperiment {
    /// Its name on the command line.
    fn id(&self) -> &'static str;
    /// What it is, in a line.
    fn title(&self) -> &'static str;
    /// All cells, the most wanted first.
    fn cells(&self, options: &Options) -> Vec<Cell>;
    /// Cells that the store lacks.
    ///
    /// # Errors
    /// A store that cannot be read.
    fn missing(&self, options: &Options, store: &Store) -> Result<Vec<Cell>, Error>;
    /// Runs the cells that the store lacks and keeps each when it is done.
    ///
    /// # Errors
    /// The first cell's that fails; those before it are kept.
    fn run_missing(
        &self,
        options: &Options,
        store: &Store,
        observer: &mut dyn CellObserver,
        stop: &AtomicBool,
    ) -> Result<(), Error>;
    /// Draws what the store has, and says how many of its cells are missing; `None` if it was never
    /// begun.
    ///
    /// # Errors
    /// A store that cannot be read.
    fn draw_from(&self, page: &PageContext<'_>) -> Result<Option<(Drawn, usize)>, Error>;
}

impl<E: Experiment> AnyExperiment for E {
    fn id(&self) -> &'static str {
        Experiment::id(self)
    }

    fn title(&self) -> &'static str {
        Experiment::title(self)
    }

    fn cells(&self, options: &Options) -> Vec<Cell> {
        self.jobs(options).iter().map(|job| self.cell(job, options)).collect()
    }

    fn missing(&self, options: &Options, store: &Store) -> Result<Vec<Cell>, Error> {
        let jobs = missing_jobs(self, options, store)?;
        Ok(jobs.into_iter().map(|(_, cell)| cell).collect())
    }

    fn run_missing(
        &self,
        options: &Options,
        store: &Store,
        observer: &mut dyn CellObserver,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        Runner { options, store, observer, stop }.run_missing(self)
    }

    fn draw_from(&self, page: &PageContext<'_>) -> Result<Option<(Drawn, usize)>, Error> {
        let finished = match page.store.finished(self)? {
            Some(finished) => finished,
            None if E::DRAWN_WITHOUT_CELLS => Finished::default(),
            None => return Ok(None),
        };
        let missing = finished.wanted - finished.pairs.len();
        Ok(Some((self.draw(&finished, page)?, missing)))
    }
}
