//! `geodp evaluate`: how a trained model does on held-out records.

use crate::failure::classify;
use crate::summary;
use geodp::config::Imported;
use geodp::trained::Trained;
use serde::Serialize;
use std::path::PathBuf;

/// Measure a trained model on held-out records.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  geodp evaluate runs/mnist
  geodp evaluate runs/patients --data newer.csv")]
pub(crate) struct Args {
    /// The folder of a finished run.
    run: PathBuf,
    /// Another labelled .csv file, read by the run's schema; the run's own test set if absent.
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
}

#[derive(Serialize)]
struct Measured<'a> {
    accuracy: f64,
    loss: f64,
    records: usize,
    privacy: &'a str,
    /// What reading did to tables; for the data's owner.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    imported: Vec<Imported>,
}

pub(crate) fn run(args: Args, json: bool) -> anyhow::Result<()> {
    let trained = Trained::open(&args.run).map_err(classify)?;
    let (records, imported) = match &args.data {
        Some(path) => {
            let (records, imported) = trained.read_labelled(path).map_err(classify)?;
            (records, vec![imported])
        }
        None => {
            let loaded = trained.config().data.load().map_err(classify)?;
            (loaded.split.test, loaded.imported)
        }
    };
    let result = trained.evaluate(&records).map_err(classify)?;
    let measured = Measured {
        accuracy: result.accuracy(),
        loss: result.mean_loss,
        records: result.count,
        privacy: trained.statement_line(),
        imported,
    };
    if json {
        println!("{}", serde_json::to_string_pretty(&measured)?);
    } else {
        measured.imported.iter().for_each(summary::announce_import);
        println!("accuracy  {:.2} %", 100.0 * measured.accuracy);
        println!("loss      {:.4}", measured.loss);
        println!("records   {}", measured.records);
        println!("privacy   {}", measured.privacy);
    }
    Ok(())
}
