//! `geodp evaluate`: how a trained model does on held-out records.

use crate::failure::classify;
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
}

pub(crate) fn run(args: Args, json: bool) -> anyhow::Result<()> {
    let trained = Trained::open(&args.run).map_err(classify)?;
    let records = match &args.data {
        Some(path) => trained.read_labelled(path).map_err(classify)?,
        None => trained.config().data.load().map_err(classify)?.test,
    };
    let result = trained.evaluate(&records).map_err(classify)?;
    let measured = Measured {
        accuracy: result.accuracy(),
        loss: result.mean_loss,
        records: result.count,
        privacy: trained.statement_line(),
    };
    if json {
        println!("{}", serde_json::to_string_pretty(&measured)?);
    } else {
        println!("accuracy  {:.2} %", 100.0 * measured.accuracy);
        println!("loss      {:.4}", measured.loss);
        println!("records   {}", measured.records);
        println!("privacy   {}", measured.privacy);
    }
    Ok(())
}
