//! The end of a run: model, statement and report are written, the noise's key is deleted.
//!
//! The statement comes last: its presence says that the run is finished and everything else is in
//! place. A crash before it leaves a run that resumes at its last step and finishes again.

use super::log::RunLog;
use super::metrics::BlockMetrics;
use super::{Finished, card, files, follow, key};
use crate::Error;
use crate::config::TestIs;
use crate::engine::{About, Baseline, Engine};
use crate::model_file::ModelNote;
use crate::report::{self, ReportInputs};
use crate::select::Selection;
use crate::statement::Statement;
use crate::watch::{Observer, Watch};
use geodp_mechanism::perturb::PolarSummary;

/// What the steps came to.
pub(super) struct Trained {
    pub(super) weights: Vec<f32>,
    pub(super) selection: Option<Selection>,
    pub(super) polar: Option<PolarSummary>,
}

pub(super) fn finish(
    log: RunLog,
    engine: &dyn Engine,
    config_toml: &str,
    Trained { weights, selection, polar }: Trained,
    watch: &dyn Watch,
    observer: &mut dyn Observer,
) -> Result<Finished, Error> {
    let RunLog { folder, plan, ledger, charged, position, metrics, released, scores, .. } = log;
    let mut statement = Statement::of(&plan, ledger.account(), charged, selection)?;
    statement.polar = polar;
    statement.accuracy = released;
    statement.data_set = super::data_ledger::total(&plan)?;
    let about = engine.about();
    statement.looked = about.looked;
    let note = ModelNote { statement: statement.headline(), data: position.data };
    let model = engine
        .model_file(&weights, &note)
        .map_err(|source| Error::Engine { step: plan.steps, source })?;
    files::write_atomically(&folder.join("model.safetensors"), &model)?;
    let card = card::card(&about, &statement, &metrics);
    files::write_atomically(&folder.join("MODEL_CARD.md"), card.as_bytes())?;
    let findings = watch.findings(&plan, &statement)?;
    if let Some(findings) = &findings {
        files::write_secret(&follow::findings_path(&folder), findings.json.as_bytes())?;
    }
    let scores = match scores {
        // A run that was resumed behind its last step has not measured.
        None => {
            engine.scores(&weights).map_err(|source| Error::Engine { step: plan.steps, source })?
        }
        scores => scores,
    };
    let page = report::html(&ReportInputs {
        plan: &plan,
        data_name: &about.data,
        model_name: &about.model,
        statement: &statement,
        metrics: &metrics,
        config_toml,
        ledger_records: ledger.records(),
        ledger_head: ledger.head(),
        scores: scores.as_ref(),
        classes: &about.classes,
        imported: &about.imported,
        measured: findings.map(|findings| findings.section),
    });
    files::write_secret(&folder.join("report.html"), page.as_bytes())?;
    if let Some(warning) = nothing_learned(&metrics, &about) {
        observer.on_warning(&warning);
    }
    let json = serde_json::to_string_pretty(&statement)
        .map_err(|e| Error::Plan(format!("the statement cannot be written as JSON: {e}")))?;
    files::write_atomically(&folder.join("statement.json"), json.as_bytes())?;
    // It has served: without it nobody can subtract the noise.
    key::destroy(&folder)?;
    follow::forget(&folder, None)?;
    Ok(Finished { statement, metrics, weights })
}

/// A loud word if the model does no better than knowing how common the classes are: by its loss, which
/// sees what accuracy does not where a class is rare. Classes that are better than that with
/// probabilities that are worse get a word of their own.
fn nothing_learned(metrics: &[BlockMetrics], about: &About) -> Option<String> {
    let test = metrics.iter().rev().find_map(|m| m.test)?;
    if let Some(r_squared) = test.errors.and_then(|errors| errors.r_squared) {
        return (r_squared <= 0.0).then(|| {
            "NOTHING WAS LEARNED: the predicted numbers are no nearer than their mean (R² ≤ 0). Check that \
             declared ranges fit the data (the import report), then try another clipping threshold, \
             learning rate, more epochs, a larger batch, or more budget"
                .to_owned()
        });
    }
    let Baseline { accuracy: commonest, loss: base_rate } = about.baseline?;
    if test.loss < base_rate {
        return None;
    }
    // One standard error of the accuracy: below that, it is the same.
    let error = (commonest * (1.0 - commonest) / test.records as f64).sqrt();
    let (accuracy, chance) = (100.0 * test.accuracy, 100.0 * commonest);
    let verdict = if test.accuracy <= commonest + error {
        format!(
            "NOTHING WAS LEARNED: accuracy {accuracy:.1} % (the commonest class alone: {chance:.1} %) and"
        )
    } else {
        format!(
            "PROBABILITIES ARE OFF: classes are better than the commonest one alone ({accuracy:.1} % and \
             {chance:.1} %), but"
        )
    };
    let whose = match test.is {
        TestIs::Public => "public",
        TestIs::Private => "private",
    };
    Some(format!(
        "{verdict} loss {:.3} on {} {whose} held-out records, where answering with the classes' shares \
         has {base_rate:.3}. Usual causes, the likeliest first: declared ranges far wider than the values \
         (see the import report), so that their scale is lost; a clip_norm too small (it bends \
         probabilities) or too large (it is noise); a learning rate too large or too small; too few \
         records or too little ε for so many parameters",
        test.loss, test.records
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::metrics::TestMetrics;

    fn warning(accuracy: f64, loss: f64, labels: &[u32]) -> Option<String> {
        let test = TestMetrics { accuracy, loss, records: 1000, ..TestMetrics::default() };
        let metrics = [BlockMetrics { test: Some(test), ..BlockMetrics::default() }];
        nothing_learned(&metrics, &About { baseline: Baseline::of(labels, 2), ..About::default() })
    }

    /// One positive in ten: the base rate's loss is 0.3251, its accuracy 90 %.
    #[test]
    fn warnings_are_about_loss_against_the_base_rate() {
        let rare: Vec<u32> = (0..1000).map(|at| u32::from(at % 10 == 0)).collect();
        assert_eq!(warning(0.90, 0.30, &rare), None, "it ranks rare positives: it has learnt");
        let nothing = warning(0.90, 0.33, &rare).unwrap();
        assert!(nothing.starts_with("NOTHING WAS LEARNED") && nothing.contains("0.325"));
        for cause in ["ranges", "scale", "clip_norm", "private held-out"] {
            assert!(nothing.contains(cause), "{cause} is not in: {nothing}");
        }
        let off = warning(0.95, 0.60, &rare).unwrap();
        assert!(off.starts_with("PROBABILITIES ARE OFF"), "{off}");
        assert_eq!(warning(0.5, 9.0, &[]), None, "nothing held out, nothing to say");
    }
}
