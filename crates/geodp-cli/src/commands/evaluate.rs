//! `geodp evaluate`: how a trained model does on held-out records.

use crate::failure::classify;
use crate::stdin::Spooled;
use crate::summary;
use geodp::config::Imported;
use geodp::config::TestIs;
use geodp::scores::{Errors, Scores};
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
    /// Another labelled table, read by the run's schema (- is CSV on standard input); the run's own test
    /// set if absent.
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
}

#[derive(Serialize)]
struct Measured<'a> {
    /// Of classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    accuracy: Option<f64>,
    loss: f64,
    /// Of classes.
    #[serde(flatten)]
    scores: Option<Scores>,
    /// Of numbers.
    #[serde(flatten)]
    errors: Option<Errors>,
    classes: &'a [String],
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
            let spooled = Spooled::of(path)?;
            let (records, imported) = trained.read_labelled(spooled.path()).map_err(classify)?;
            (records, vec![imported], TestIs::Private)
        }
        None => {
            let (split, imported) = trained.own_records().map_err(classify)?;
            (split.test, imported, trained.config().data.test_is())
        }
    };
    let result = trained.evaluate(&records).map_err(classify)?;
    let errors = trained.errors(&records).map_err(classify)?;
    let scores = match errors {
        Some(_) => None,
        None => Some(trained.scores(&records).map_err(classify)?),
    };
    let claimed = trained.claimed_by_the_file();
    let measured = Measured {
        accuracy: errors.is_none().then(|| result.accuracy()),
        loss: result.mean_loss,
        scores,
        errors,
        classes: records.class_names(),
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
        if let Some(accuracy) = measured.accuracy {
            println!("accuracy  {:.2} %", 100.0 * accuracy);
        }
        if let Some(errors) = measured.errors {
            println!("errors    {errors}");
        }
        println!("loss      {:.4}", measured.loss);
        if let Some(scores) = &measured.scores {
            print_scores(scores, measured.classes);
        }
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

/// Classes up to which the whole confusion matrix is shown.
const MOST_SHOWN: usize = 12;

fn print_scores(scores: &Scores, classes: &[String]) {
    if let Some(auc) = scores.auc {
        let what = if classes.len() > 2 { " (mean of each class against the rest)" } else { "" };
        println!("AUC       {auc:.4}{what}");
    }
    let wide = classes.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(8);
    println!("{:wide$}  recall    classified as", "class");
    for (class, name) in classes.iter().enumerate() {
        let recall =
            scores.recall[class].map_or("–".to_owned(), |r| format!("{:.2} %", 100.0 * r));
        let row = scores.confusion[class].iter().map(|count| format!("{count:>7}"));
        let row = if classes.len() <= MOST_SHOWN { row.collect::<String>() } else { String::new() };
        println!("{name:wide$}  {recall:<8}{row}");
    }
    println!("calibration (mean probability, share that was so, records)");
    for bin in &scores.calibration {
        println!("  {:.3}  {:.3}  {}", bin.predicted, bin.observed, bin.records);
    }
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
