//! The end of a run: model, statement and report are written, the noise's key is deleted.
//!
//! The statement comes last: its presence says that the run is finished and everything else is in
//! place. A crash before it leaves a run that resumes at its last step and finishes again.

use super::books::Books;
use super::follow::{self, Follow};
use super::metrics::BlockMetrics;
use super::{Finished, Observer, files, open};
use crate::Error;
use crate::config::RunConfig;
use crate::model_file::ModelFile;
use crate::plan::Plan;
use crate::report::{self, Story};
use crate::select::Selection;
use crate::statement::Statement;
use geodp_data::Split;
use geodp_report::Section;
use std::path::Path;

pub(super) fn finish(
    books: Books,
    config: &RunConfig,
    split: &Split,
    (weights, selection): (Vec<f32>, Option<Selection>),
    observer: &mut dyn Observer,
    follower: Option<&dyn Follow>,
) -> Result<Finished, Error> {
    let Books { folder, plan, ledger, charged, metrics, .. } = books;
    let statement = Statement::new(&plan, charged, selection)?;
    let model = ModelFile {
        spec: config.model.spec(&split.train),
        class_names: split.train.class_names().to_vec(),
        statement: statement.headline(),
        weights: weights.clone(),
    };
    files::write_atomically(&folder.join("model.safetensors"), &model.to_bytes()?)?;
    let findings = match follower {
        Some(follower) => follower.findings(&plan, &statement)?,
        None => None,
    };
    if let Some(findings) = &findings {
        files::write_secret(&follow::findings_path(&folder), findings.json.as_bytes())?;
    }
    let ledger = (ledger.records(), ledger.head());
    let section = findings.map(|findings| findings.section);
    let page = page(config, &plan, split, &statement, &metrics, ledger, section)?;
    files::write_atomically(&folder.join("report.html"), page.as_bytes())?;
    if let Some(warning) = nothing_learned(&metrics, split) {
        observer.on_warning(&warning);
    }
    let json = serde_json::to_string_pretty(&statement)
        .map_err(|e| Error::Plan(format!("the statement cannot be written as JSON: {e}")))?;
    files::write_atomically(&folder.join("statement.json"), json.as_bytes())?;
    delete_key(&folder)?;
    follow::forget(&folder, None)?;
    Ok(Finished { statement, metrics, weights })
}

/// The noise's key has served: without it nobody can subtract the noise.
pub(super) fn delete_key(folder: &Path) -> Result<(), Error> {
    let key = open::key_path(folder);
    if !key.exists() {
        return Ok(());
    }
    std::fs::remove_file(&key)
        .and_then(|()| files::sync_folder(&key))
        .map_err(|source| Error::Write { path: key, source })
}

/// The report page of a run as it stands; `ledger` is its number of lines and its last hash.
pub(super) fn page(
    config: &RunConfig,
    plan: &Plan,
    split: &Split,
    statement: &Statement,
    metrics: &[BlockMetrics],
    ledger: (u64, &str),
    measured: Option<Section>,
) -> Result<String, Error> {
    Ok(report::html(&Story {
        config,
        plan,
        statement,
        metrics,
        data_name: split.train.name(),
        model_name: config.model.to_string(),
        config_toml: &config.to_toml()?,
        ledger_records: ledger.0,
        ledger_head: ledger.1,
        measured,
    }))
}

/// A loud word if the model does no better than always answering the commonest class.
fn nothing_learned(metrics: &[BlockMetrics], split: &Split) -> Option<String> {
    let test = metrics.iter().rev().find_map(|m| m.test)?;
    let mut counts = vec![0_usize; split.test.classes()];
    for label in split.test.labels() {
        counts[*label as usize] += 1;
    }
    let commonest = *counts.iter().max()? as f64 / split.test.len() as f64;
    // One standard error of the accuracy: below that, it is the same.
    let error = (commonest * (1.0 - commonest) / split.test.len() as f64).sqrt();
    (test.accuracy <= commonest + error).then(|| {
        format!(
            "NOTHING WAS LEARNED: test accuracy {:.1} % is no better than always answering the \
             commonest class ({:.1} %). Try another learning rate, more epochs, a larger batch, or \
             more budget",
            100.0 * test.accuracy,
            100.0 * commonest
        )
    })
}
