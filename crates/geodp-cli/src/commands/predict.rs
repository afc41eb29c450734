//! `geodp predict`: classes and probabilities for new records, CSV in and CSV out.

use crate::failure::{bad_input, classify};
use crate::summary;
use geodp::config::Imported;
use geodp::trained::{Predictions, Trained};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

/// Predict classes and probabilities of new records.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  geodp predict runs/patients new.csv > predictions.csv
  geodp predict runs/mnist digits.npy --out predictions.csv")]
pub(crate) struct Args {
    /// The folder of a finished run.
    run: PathBuf,
    /// Records: a .csv file with the schema's columns (the label may be absent), .npy or IDX images.
    input: PathBuf,
    /// Where to write; standard output if absent.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Serialize)]
struct Predicted {
    #[serde(flatten)]
    predictions: Predictions,
    /// What reading did to the table; absent for images.
    #[serde(skip_serializing_if = "Option::is_none")]
    imported: Option<Imported>,
}

pub(crate) fn run(args: Args, json: bool) -> anyhow::Result<()> {
    let trained = Trained::open(&args.run).map_err(classify)?;
    let (records, imported) = trained.read_unlabelled(&args.input).map_err(classify)?;
    let predictions = trained.predict(&records).map_err(classify)?;
    let text = if json {
        serde_json::to_string_pretty(&Predicted { predictions, imported })?
    } else {
        imported.iter().for_each(summary::announce_import);
        predictions.to_csv()
    };
    match args.out {
        Some(path) => std::fs::write(&path, text)
            .map_err(|e| bad_input(format!("cannot write {}: {e}", path.display())))?,
        None => std::io::stdout().write_all(text.as_bytes())?,
    }
    Ok(())
}
