//! `MODEL_CARD.md`: what goes with a model that is released, in the form that Hugging Face reads (YAML
//! before Markdown). Only what may be shown to anyone: figures from private records are not in it.

use super::metrics::BlockMetrics;
use crate::config::TestIs;
use crate::engine::About;
use crate::statement::Statement;
use std::fmt::Write;

/// The card of a finished run.
pub(super) fn card(about: &About, statement: &Statement, metrics: &[BlockMetrics]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_card(&mut text, about, statement, metrics);
    text
}

fn write_card(
    out: &mut String,
    about: &About,
    statement: &Statement,
    metrics: &[BlockMetrics],
) -> std::fmt::Result {
    writeln!(out, "---\nlibrary_name: geodp\ntags:\n- differential-privacy\n---\n")?;
    writeln!(out, "# {} on {}\n", about.model, about.data)?;
    if !about.classes.is_empty() {
        writeln!(out, "Tells apart: {}.\n", about.classes.join(", "))?;
    }
    writeln!(out, "## Privacy\n\n**{}**\n", statement.headline())?;
    for paragraph in statement.paragraphs() {
        writeln!(out, "{paragraph}\n")?;
    }
    writeln!(out, "| | |\n|---|---|")?;
    for (name, value) in statement.facts() {
        writeln!(out, "| {} | {} |", cell(&name), cell(&value))?;
    }
    writeln!(out, "\n## Evaluation\n")?;
    let test = metrics.iter().rev().find_map(|m| m.test);
    match (&statement.accuracy, test) {
        (Some(released), _) => writeln!(out, "Accuracy on private records: {released}.")?,
        (None, Some(test)) if test.is == TestIs::Public => writeln!(
            out,
            "On {} public records: {}.",
            test.records,
            match test.errors {
                Some(errors) => errors.to_string(),
                None => format!("accuracy {:.2} %", 100.0 * test.accuracy),
            }
        )?,
        _ => writeln!(
            out,
            "Measured on private records only; those figures are not part of what was released."
        )?,
    }
    writeln!(out, "\n## Use\n")?;
    writeln!(
        out,
        "`model.safetensors` holds the weights by PyTorch's names, and in its metadata the network, the \
         classes and the schema of the inputs. `geodp predict` reads tables by them; `geodp export \
         RUN --onnx FILE` makes a graph that takes raw columns.\n"
    )?;
    writeln!(out, "Made by geodp {}.", env!("CARGO_PKG_VERSION"))
}

/// Text that stays within its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
