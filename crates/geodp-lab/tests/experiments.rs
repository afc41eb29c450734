//! Every experiment in its tiny form: it runs, resumes, and its CSV has the rows that are promised.

use geodp_lab::{Error, Options, Silent, Size, Store, begin, catalogue, draw, missing, run};
use std::sync::atomic::AtomicBool;

fn options(folder: &std::path::Path) -> Options {
    Options { size: Size::Tiny, seeds: 2, epochs: None, data_dir: folder.join("no data here") }
}

fn csv_rows(store: &Store, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(store.folder().join(name)).unwrap();
    text.lines().skip(1).map(str::to_owned).collect()
}

/// Runs one experiment, interrupted after a cell, and draws it.
fn run_tiny(id: &str) -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let (store, options) = (Store::new(folder.path()), options(folder.path()));
    let experiment = catalogue().into_iter().find(|e| e.id() == id).unwrap();
    begin(&*experiment, &options, &store, false, "test").unwrap();
    draw(&store).unwrap();
    let all = experiment.cells(&options).len();
    let keys: std::collections::BTreeSet<_> =
        experiment.cells(&options).into_iter().map(|c| c.key).collect();
    assert_eq!(keys.len(), all, "keys of {id} are not unique");

    struct StopAfterFirst<'a>(&'a AtomicBool);
    impl geodp_lab::Observer for StopAfterFirst<'_> {
        fn on_cell(&mut self, _: &geodp_lab::Cell, _: usize, _: usize) {}
        fn on_progress(&mut self, _: f64) {}
        fn on_done(&mut self, _: &geodp_lab::Cell, _: std::time::Duration) {
            self.0.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }
    let stop = AtomicBool::new(false);
    let ended = run(&*experiment, &options, &store, &mut StopAfterFirst(&stop), &stop);
    assert!(all == 1 || matches!(ended, Err(Error::Interrupted)));
    assert_eq!(missing(&*experiment, &options, &store).unwrap().len(), all - 1);
    draw(&store).unwrap();

    run(&*experiment, &options, &store, &mut Silent, &AtomicBool::new(false)).unwrap();
    assert!(missing(&*experiment, &options, &store).unwrap().is_empty());
    draw(&store).unwrap();
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("complete"));
    (folder, store)
}

#[test]
fn figure1_has_four_rows_a_point() {
    let (_folder, store) = run_tiny("fig1");
    assert_eq!(csv_rows(&store, "fig1.csv").len(), 4 * 6);
}

#[test]
fn figure3_has_four_rows_a_point_and_nine_panels() {
    let (_folder, store) = run_tiny("fig3");
    assert_eq!(csv_rows(&store, "fig3.csv").len(), 4 * 9 * 6);
    for letter in 'a'..='i' {
        assert!(store.folder().join(format!("fig3{letter}.svg")).exists());
    }
}

#[test]
fn figure4_has_four_rows_a_point() {
    let (_folder, store) = run_tiny("fig4");
    assert_eq!(csv_rows(&store, "fig4.csv").len(), 4 * 3 * 6);
}

#[test]
fn figure5_has_a_row_for_every_curve_and_protocol() {
    let (_folder, store) = run_tiny("fig5");
    let rows = csv_rows(&store, "fig5-final.csv");
    assert_eq!(rows.len(), 2 * 14);
    assert!(rows.iter().all(|row| row.ends_with(",2")));
}

#[test]
fn figure6_has_a_row_for_every_size() {
    let (_folder, store) = run_tiny("fig6");
    assert_eq!(csv_rows(&store, "fig6-times.csv").len(), 9 * 3);
}

#[test]
fn table2_has_a_row_for_every_method_and_sigma() {
    let (_folder, store) = run_tiny("table2");
    let rows = csv_rows(&store, "table2.csv");
    assert_eq!(rows.len(), 18 * 2);
    assert!(rows.iter().all(|row| row.contains(",run,")));
}

#[test]
fn table3_has_a_row_for_every_method_and_sigma() {
    let (_folder, store) = run_tiny("table3");
    let rows = csv_rows(&store, "table3.csv");
    assert_eq!(rows.len(), 18 * 2);
    assert!(rows.iter().all(|row| row.contains(",run,")));
}
