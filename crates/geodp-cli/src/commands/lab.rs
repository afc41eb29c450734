//! `geodp lab`: the paper's figures and tables, run again.

use crate::failure::bad_input;
use crate::interrupt;
use crate::pool::in_pool;
use geodp_data::default_data_dir;
use geodp_lab::{AnyExperiment, Cell, CellObserver, Error, Options, Size, Store};
use geodp_report::format;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

/// Run the paper's figures and tables again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  geodp lab list
  geodp lab run table2 --quick
  geodp lab run all --seeds 3 --out results --resume

Several processes share the cells of one folder: start the same command again, with --resume, on each core.")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Which experiments there are, and how long they take.
    List(Choice),
    /// Run experiments cell by cell, then draw the page.
    Run {
        /// Names from `geodp lab list`, or all.
        #[arg(required = true)]
        experiments: Vec<String>,
        /// Where cells, CSV, SVG and report.html go.
        #[arg(long, value_name = "DIR", default_value = "lab")]
        out: PathBuf,
        /// Continue what is in the folder.
        #[arg(long)]
        resume: bool,
        #[command(flatten)]
        choice: Choice,
    },
    /// Draw the page again from the cells that exist.
    Draw {
        /// Where the cells are.
        #[arg(long, value_name = "DIR", default_value = "lab")]
        out: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct Choice {
    /// The small form: at most two minutes each on two cores.
    #[arg(long)]
    quick: bool,
    /// Repetitions of each training.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Length of the tables' trainings; the paper's 20 if absent.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=10000))]
    epochs: Option<u64>,
    /// Where CIFAR-10 is; $GEODP_DATA or the platform's data folder if absent.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Choice {
    fn options(self) -> anyhow::Result<Options> {
        let data_dir = match self.data {
            Some(folder) => folder,
            None => default_data_dir().map_err(bad_input)?,
        };
        let size = if self.quick { Size::Quick } else { Size::Full };
        Ok(Options { size, seeds: self.seeds, epochs: self.epochs, data_dir })
    }
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    title: &'static str,
    cells: usize,
    expected_seconds: f64,
}

pub(crate) fn run(args: Args, json: bool) -> anyhow::Result<()> {
    match args.action {
        Action::List(choice) => list(&choice.options()?, json),
        Action::Draw { out } => {
            if !out.join("cells").is_dir() {
                return Err(bad_input(format!(
                    "{} holds no cells: geodp lab run makes them",
                    out.display()
                )));
            }
            geodp_lab::draw(&Store::new(&out)).map_err(classify)?;
            done(&out, json);
            Ok(())
        }
        Action::Run { experiments, out, resume, choice } => {
            let options = choice.options()?;
            in_pool(None, || run_all(&experiments, out, resume, &options, json))?
        }
    }
}

fn list(options: &Options, json: bool) -> anyhow::Result<()> {
    let entries: Vec<Entry> = geodp_lab::catalogue()
        .iter()
        .map(|experiment| {
            let cells = experiment.cells(options);
            let expected_seconds = seconds(&cells);
            Entry {
                name: experiment.id(),
                title: experiment.title(),
                cells: cells.len(),
                expected_seconds,
            }
        })
        .collect();
    if json {
        println!("{}", serde_json::to_string_pretty(&entries)?);
        return Ok(());
    }
    println!("{:<19} {:>5}  {:<18} what", "name", "cells", "on two cores");
    for Entry { name, title, cells, expected_seconds } in entries {
        println!("{name:<19} {cells:>5}  {:<18} {title}", about(expected_seconds));
    }
    Ok(())
}

fn run_all(
    names: &[String],
    out: PathBuf,
    resume: bool,
    options: &Options,
    json: bool,
) -> anyhow::Result<()> {
    let chosen = choose(names)?;
    let store = Store::new(&out);
    for experiment in &chosen {
        geodp_lab::begin(&**experiment, options, &store, resume).map_err(classify)?;
    }
    let mut expected = 0.0;
    for experiment in &chosen {
        let left = experiment.missing(options, &store).map_err(classify)?;
        expected += seconds(&left);
    }
    eprintln!("expected time on two cores that do nothing else: {}", about(expected));
    let stop = interrupt::flag()?;
    for experiment in &chosen {
        let mut bar = CellBar::new(experiment.id(), json);
        let ended = experiment.run_missing(options, &store, &mut bar, stop);
        bar.bar.finish_and_clear();
        if let Err(Error::Interrupted) = ended {
            geodp_lab::draw(&store).map_err(classify)?;
            eprintln!("stopped; finished cells are in {}, continue with --resume", out.display());
            return Ok(());
        }
        ended.map_err(classify)?;
        geodp_lab::draw(&store).map_err(classify)?;
    }
    done(&out, json);
    Ok(())
}

fn choose(names: &[String]) -> anyhow::Result<Vec<Box<dyn AnyExperiment>>> {
    let catalogue = geodp_lab::catalogue();
    let known: Vec<&str> = catalogue.iter().map(|e| e.id()).collect();
    if let Some(name) = names.iter().find(|n| *n != "all" && !known.contains(&n.as_str())) {
        return Err(bad_input(format!(
            "there is no experiment {name}: choose from {}, or all",
            known.join(", ")
        )));
    }
    let wanted = |e: &dyn AnyExperiment| names.iter().any(|n| n == "all" || n == e.id());
    Ok(catalogue.into_iter().filter(|e| wanted(&**e)).collect())
}

fn seconds(cells: &[Cell]) -> f64 {
    cells.iter().map(|cell| cell.expected_seconds).sum()
}

fn about(seconds: f64) -> String {
    format!("about {}", format::duration(Duration::from_secs_f64(seconds.max(1.0))))
}

fn done(out: &std::path::Path, json: bool) {
    let page = out.join("report.html");
    if json {
        println!("{}", serde_json::json!({ "folder": out, "report": page }));
    } else {
        println!("results  {}", page.display());
    }
}

/// What the user gave is at fault, or the system.
fn classify(error: Error) -> anyhow::Error {
    match error {
        Error::Training(error) => crate::failure::classify(error),
        Error::AlreadyThere { .. }
        | Error::OtherSettings { .. }
        | Error::DamagedCell { .. }
        | Error::Missing { .. }
        | Error::Argument(_)
        | Error::Data(_) => bad_input(error),
        _ => error.into(),
    }
}

/// A bar over the cells of one experiment; a line per cell where there is no terminal.
struct CellBar {
    bar: ProgressBar,
    name: &'static str,
    lines: bool,
    number: usize,
}

impl CellBar {
    fn new(name: &'static str, quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = if quiet || !terminal { ProgressBar::hidden() } else { ProgressBar::new(1) };
        let template = format!("{name:<8} {{bar:24}} {{msg}} · {{elapsed}}, {{eta}} left");
        // The template is fixed text: if it were wrong, the default style would do.
        bar.set_style(
            ProgressStyle::with_template(&template)
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("█▉▊▋▌▍▎▏ "),
        );
        Self { bar, name, lines: !quiet && !terminal, number: 0 }
    }
}

/// Parts of a cell that the bar can show.
const PARTS: u64 = 1000;

impl CellObserver for CellBar {
    fn on_cell(&mut self, cell: &Cell, number: usize, of: usize) {
        self.number = number;
        self.bar.set_length(of as u64 * PARTS);
        self.bar.set_position((number as u64 - 1) * PARTS);
        self.bar.set_message(format!("{number}/{of} {}", cell.key));
    }

    fn on_progress(&mut self, share: f64) {
        let inside = (share.clamp(0.0, 1.0) * PARTS as f64) as u64;
        self.bar.set_position((self.number as u64 - 1) * PARTS + inside);
    }

    fn on_done(&mut self, cell: &Cell, took: Duration) {
        if self.lines {
            eprintln!("{} {}: {}", self.name, cell.key, format::duration(took));
        }
    }
}
