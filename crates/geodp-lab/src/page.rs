//! The page: what every experiment drew, with the files beside it.

use crate::experiment::{Drawn, Experiment};
use crate::store::Store;
use crate::{Error, catalogue};
use geodp_report::{Page, Section, Table, Text};

/// Draws every experiment from the cells that exist: CSV and SVG files and `report.html`.
///
/// # Errors
/// Files that cannot be read or written.
pub fn draw(store: &Store) -> Result<(), Error> {
    let mut page = Page::new("GeoDP, reproduced").subtitle(
        Text::from("Every figure and table of ")
            .strong("Analyzing and Optimizing Perturbation of DP-SGD Geometrically")
            .plain(", run again by an independent implementation."),
    );
    let mut sections = Vec::new();
    let mut runs = Table::new(["experiment", "state", "how it was run"]);
    for experiment in catalogue() {
        let Some(drawn) = experiment.draw(store)? else {
            runs = runs.row([experiment.id(), "not run", ""]);
            continue;
        };
        for (name, text) in &drawn.files {
            store.write_text(name, text)?;
        }
        let (state, how) = state(&*experiment, &drawn, store)?;
        runs = runs.row([experiment.id().to_owned(), state, how]);
        sections.push(drawn);
    }
    for drawn in sections {
        page = page.section(drawn.section);
    }
    page = page.section(
        Section::new("How it was run")
            .table(runs)
            .paragraph("To run everything again, or any one of the names above:")
            .code("geodp lab run all --seeds 3 --out results\ngeodp lab run table2 --quick"),
    );
    store.write_text("report.html", &page.to_html())
}

fn state(
    experiment: &dyn Experiment,
    drawn: &Drawn,
    store: &Store,
) -> Result<(String, String), Error> {
    let Some(settings) = store.settings(experiment.id())? else {
        return Ok(("from other cells".into(), String::new()));
    };
    let state = match drawn.missing {
        0 => "complete".to_owned(),
        n => format!("{n} not run"),
    };
    Ok((state, format!("size {}; {}", settings.size, settings.provenance)))
}
