//! `geodp predict`: classes and probabilities for new records, any table in and CSV out.

use crate::failure::{bad_input, classify};
use crate::stdin::Spooled;
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
    /// Records: a table with the schema's columns (the label may be absent; - is CSV on standard
    /// input), an NPY or IDX file, or a folder of images. Identifiers are passed through; a row that
    /// cannot be read is left out and reported.
    input: PathBuf,
    /// Columns of a table to pass through, besides those that look like identifiers.
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    keep: Vec<String>,
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
    let spooled = Spooled::of(&args.input)?;
    let inputs = trained.read_inputs(spooled.path(), &args.keep).map_err(classify)?;
    let predictions = trained.predict_inputs(&inputs).map_err(classify)?;
    let imported = inputs.imported;
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
