//! `geodp evaluate`: how a trained model does on held-out records.

use crate::failure::classify;
use crate::summary;
use geodp::config::Imported;
use geodp::config::TestIs;
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
    /// Whose the records are: figures from private ones are for the data's owner.
    is: TestIs,
    privacy: String,
    claimed_by_file: &'a str,
    /// What reading did to tables; for the data's owner.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    imported: Vec<Imported>,
}

pub(crate) fn run(args: Args, json: bool) -> anyhow::Result<()> {
    let trained = Trained::open(&args.run).map_err(classify)?;
    let (records, imported, is) = match &args.data {
        Some(path) => {
            let (records, imported) = trained.read_labelled(path).map_err(classify)?;
            (records, vec![imported], TestIs::Private)
        }
        None => {
            let loaded = trained.config().load().map_err(classify)?;
            trained.check_data(&loaded.split.train).map_err(classify)?;
            (loaded.split.test, loaded.imported, trained.config().data.test_is())
        }
    };
    let result = trained.evaluate(&records).map_err(classify)?;
    let claimed = trained.claimed_by_the_file();
    let measured = Measured {
        accuracy: result.accuracy(),
        loss: result.mean_loss,
        records: result.count,
        is,
        privacy: privacy(&trained),
        claimed_by_file: &claimed,
        imported,
    };
    if json {
        println!("{}", serde_json::to_string_pretty(&measured)?);
    } else {
        measured.imported.iter().for_each(summary::announce_import);
        println!("accuracy  {:.2} %", 100.0 * measured.accuracy);
        println!("loss      {:.4}", measured.loss);
        match measured.is {
            TestIs::Public => println!("records   {} (public)", measured.records),
            TestIs::Private => println!(
                "records   {} (private: accuracy and loss are for the data's owner, no ε covers them)",
                measured.records
            ),
        }
        println!("privacy   {}", measured.privacy);
        println!("          (claimed by the file: {claimed})");
    }
    Ok(())
}

/// What the run's ledger says, in one line.
fn privacy(trained: &Trained) -> String {
    let claim = trained.claims().and_then(|claims| claims.first());
    let Some(claim) = claim else {
        return "unknown: there is no ledger beside the model".to_owned();
    };
    match trained.seed() {
        Some(seed) if claim.is_private() => {
            format!("{claim} (seeded noise, seed {seed}: for experiments)")
        }
        _ => claim.to_string(),
    }
}
