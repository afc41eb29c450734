//! `geodp train`: a private training from flags or a config file, into a run folder.

use crate::commands::settings::Settings;
use crate::failure::{Stopped, bad_input, classify};
use crate::pool::in_pool;
use crate::progress::{FeatureBar, TrainingBar};
use crate::{interrupt, summary};
use geodp::run::{Ended, Run};
use geodp::team::serve;
use geodp_audit::measure::Measure;
use geodp_mechanism::NoiseSource;
use geodp_mpi::Seat;
use std::path::PathBuf;
use std::sync::Arc;

/// Train a model privately, or resume a training.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  geodp train --data mnist --epsilon 3 --out runs/mnist
  geodp train --data patients.parquet --schema schema.toml --epsilon 3 --out runs/patients
  geodp train --data cifar10 --views 2 --epsilon 3
  geodp train --mechanism geodp --beta 0.1 --noise-multiplier 1 --batch 16384
  geodp train --select sur --importance --clip psac --optimizer adam --epsilon 3
  geodp train --mechanism geodp --beta 0.1 --epsilon 3 --measure 1000
  geodp train --config run.toml --out runs/again
  geodp train --resume runs/mnist")]
pub(crate) struct Args {
    /// Continue the run in this folder; nothing else may be given.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["config", "out"])]
    resume: Option<PathBuf>,
    /// Folder of the new run; a numbered one under runs/ if absent.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Follow so many records (1000 if no number is given) and measure what each pays: for the data's
    /// owner.
    #[arg(long, value_name = "RECORDS", num_args = 0..=1, default_missing_value = "1000", conflicts_with = "resume")]
    measure: Option<u64>,
    #[command(flatten)]
    settings: Settings,
    /// Threads to use; all cores if absent. Never changes the result.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: Option<u64>,
}

pub(crate) fn run(args: Args, seat: &Seat, json: bool) -> anyhow::Result<()> {
    let leader = match seat {
        Seat::Alone => None,
        Seat::Leader(leader) => Some(Arc::clone(leader)),
        // What goes wrong with its records is told to the first process, which says it.
        Seat::Worker(link) => return Ok(in_pool(args.threads, || serve(&**link))??),
    };
    let team = leader.clone();
    let features = FeatureBar::new(json);
    let show = |done, total| features.show(done, total);
    let run = match &args.resume {
        Some(folder) => {
            args.settings.refuse_all("--resume continues a run as it was planned")?;
            Run::resume_among(leader, folder, &show).map_err(classify)?
        }
        None => {
            let mut config = args.settings.config()?;
            config.train.measure = args.measure.or(config.train.measure);
            let folder = match args.out {
                Some(folder) => folder,
                None => next_folder("train")?,
            };
            Run::create_among(leader, &folder, config, &show).map_err(classify)?
        }
    };
    features.finish();
    let (folder, first_step) = (run.folder().to_owned(), run.steps_done());
    let stop = interrupt::flag()?;
    let mut bar = TrainingBar::new(&run, "", json);
    if !json {
        summary::announce(&run);
    }
    let imported = run.imported().to_vec();
    let plan = run.plan().clone();
    let mut measure = measure(&run)?;
    let ended =
        in_pool(args.threads, || run.execute(&mut measure, &mut bar, stop))?.map_err(classify)?;
    bar.finish();
    match ended {
        Ended::Finished(finished) => {
            let measured = match &measure {
                Some(measure) => measure.summary(&plan).map_err(bad_input)?,
                None => None,
            };
            let steps = plan.steps() - first_step;
            let owner = summary::ForOwner {
                measured: measured.as_ref(),
                imported: &imported,
                traffic: team.map(|leader| (leader.traffic(), steps)),
            };
            summary::print(&finished, &owner, &folder, json)
        }
        Ended::Interrupted { step } => {
            let resume = format!("geodp train --resume {}", folder.display());
            Err(Stopped(format!("stopped after step {step}; continue with: {resume}")).into())
        }
        _ => Ok(()),
    }
}

/// The watch of a run that measures its records, at its beginning.
fn measure(run: &Run) -> anyhow::Result<Option<Measure>> {
    let train = &run.config().train;
    let Some(count) = train.measure else { return Ok(None) };
    let source = match train.seed {
        Some(seed) => NoiseSource::from_seed(seed),
        None => NoiseSource::from_os()?,
    };
    let records = run.plan().facts().records;
    Ok(Some(Measure::new(records, count, 1, &source).map_err(bad_input)?))
}

/// runs/NAME-001, runs/NAME-002, …: the first that does not exist.
pub(crate) fn next_folder(name: &str) -> anyhow::Result<PathBuf> {
    (1..10_000)
        .map(|number| PathBuf::from(format!("runs/{name}-{number:03}")))
        .find(|folder| !folder.exists())
        .ok_or_else(|| crate::failure::bad_input("runs/ is full; give a folder with --out"))
}
