//! Every experiment in its tiny form: it runs, resumes, and its CSV has the rows that are promised.

use geodp_lab::{Cell, CellObserver, Error, Options, Size, Store, begin, catalogue, draw};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn options(folder: &std::path::Path) -> Options {
    Options { size: Size::Tiny, seeds: 1, epochs: None, data_dir: folder.join("no data here") }
}

fn csv_rows(store: &Store, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(store.folder().join(name)).unwrap();
    text.lines().skip(1).map(str::to_owned).collect()
}

/// Stops a run after a number of cells.
struct StopAfter<'a> {
    left: usize,
    stop: &'a AtomicBool,
}

impl CellObserver for StopAfter<'_> {
    fn on_cell(&mut self, _: &Cell, _: usize, _: usize) {}
    fn on_progress(&mut self, _: f64) {}
    fn on_done(&mut self, _: &Cell, _: Duration) {
        self.left -= 1;
        self.stop.store(self.left == 0, Ordering::Relaxed);
    }
}

/// Runs the first cells of an experiment and draws what there is.
fn run_some(id: &str, store: &Store, options: &Options, count: usize) {
    let experiment = catalogue().into_iter().find(|e| e.id() == id).unwrap();
    begin(&*experiment, options, store, true).unwrap();
    let before = experiment.missing(options, store).unwrap().len();
    let stop = AtomicBool::new(false);
    let mut observer = StopAfter { left: count, stop: &stop };
    let ended = experiment.run_missing(options, store, &mut observer, &stop);
    let left = experiment.missing(options, store).unwrap().len();
    assert_eq!(left, before.saturating_sub(count));
    assert!(if left == 0 { ended.is_ok() } else { matches!(ended, Err(Error::Interrupted)) });
    draw(store).unwrap();
}

/// Runs one experiment to its end, interrupted after its first cell, and draws it.
fn run_tiny(id: &str) -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let (store, options) = (Store::new(folder.path()), options(folder.path()));
    let experiment = catalogue().into_iter().find(|e| e.id() == id).unwrap();
    let cells = experiment.cells(&options);
    let keys: BTreeSet<&str> = cells.iter().map(|c| c.key.as_str()).collect();
    assert_eq!(keys.len(), cells.len(), "keys of {id} are not unique");
    run_some(id, &store, &options, 1);
    run_some(id, &store, &options, usize::MAX);
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("complete"));
    (folder, store)
}

/// The small form of every experiment is one of minutes: what the command line promises of `--quick`.
#[test]
fn the_small_form_of_every_experiment_is_planned_for_two_minutes() {
    let size = Size::Quick;
    let options = Options { size, ..options(std::path::Path::new("nowhere")) };
    for experiment in catalogue() {
        let cells = experiment.cells(&options);
        let seconds: f64 = cells.iter().map(|cell| cell.expected_seconds).sum();
        assert!(!cells.is_empty() && seconds <= 120.0, "{}: {seconds} s", experiment.id());
    }
}

#[test]
fn accuracy_has_a_row_for_every_set_and_epsilon() {
    let (_folder, store) = run_tiny("accuracy");
    // DP on three sets at four ε, two kinds of GeoDP on two of them at four and on the third at one.
    assert_eq!(csv_rows(&store, "accuracy.csv").len(), 4 * 3 + 2 * (2 * 4 + 1));
    assert!(store.folder().join("accuracy-mnist.svg").exists());
    let together = std::fs::read_to_string(store.folder().join("accuracy.svg")).unwrap();
    let sets = [">MNIST [%]", ">Fashion-MNIST [%]", ">CIFAR-10 [%]"];
    assert!(sets.iter().all(|set| together.contains(set)), "a panel for every set");
}

#[test]
fn federated_has_a_row_for_every_model_split_and_arm() {
    let (folder, store) = run_tiny("federated");
    let rows = csv_rows(&store, "federated.csv");
    assert_eq!(rows.len(), 2 * 2 * 4);
    for kind in [",certified,", ",conditional,", ",none,"] {
        assert!(rows.iter().any(|row| row.contains(kind)), "{kind}");
    }
    assert!(csv_rows(&store, "federated-rounds.csv").len() >= 2 * 2 * 4);
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("memory of the process") && page.contains("measured ε"));
}

#[test]
fn figure1_has_six_rows_a_point() {
    let (_folder, store) = run_tiny("fig1");
    assert_eq!(csv_rows(&store, "fig1.csv").len(), 6 * 6);
}

/// Groups differ by more than mechanisms do: certified GeoDP is drawn when every group has it.
#[test]
fn a_part_of_the_certified_groups_is_not_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let (store, options) = (Store::new(folder.path()), options(folder.path()));
    let page = || std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    run_some("fig1", &store, &options, 3);
    assert_eq!(csv_rows(&store, "fig1.csv").len(), 4 * 6);
    assert!(page().contains("not drawn: it is measured on 1 of 2 groups"));
    // A cell of other data is as good as none, and the page says what to do.
    let cell = folder.path().join("cells/fig1/certified-group0.json");
    let of_digits = std::fs::read_to_string(&cell).unwrap();
    let dataset = of_digits.split("\"dataset\": \"").nth(1).unwrap().split('"').next().unwrap();
    std::fs::write(&cell, of_digits.replace(dataset, "photographs")).unwrap();
    draw(&store).unwrap();
    assert!(page().contains("1 of its cells are of photographs: delete them"));
    std::fs::write(&cell, of_digits).unwrap();
    run_some("fig1", &store, &options, 1);
    assert_eq!(csv_rows(&store, "fig1.csv").len(), 6 * 6);
    assert!(!page().contains("not drawn"));
}

#[test]
fn figure3_has_six_rows_a_point_and_nine_panels() {
    let (_folder, store) = run_tiny("fig3");
    assert_eq!(csv_rows(&store, "fig3.csv").len(), 6 * 9 * 6);
    for letter in 'a'..='i' {
        assert!(store.folder().join(format!("fig3{letter}.svg")).exists());
    }
}

#[test]
fn figure4_has_six_rows_a_point() {
    let (_folder, store) = run_tiny("fig4");
    assert_eq!(csv_rows(&store, "fig4.csv").len(), 6 * 3 * 9);
}

#[test]
fn figure5_has_a_row_for_every_curve_and_protocol() {
    let (_folder, store) = run_tiny("fig5");
    let rows = csv_rows(&store, "fig5-final.csv");
    assert_eq!(rows.len(), 2 * 15);
    assert!(rows.iter().all(|row| row.ends_with(",1")));
}

#[test]
fn figure6_has_a_row_for_every_size_and_its_claim_leads_to_it() {
    let (folder, store) = run_tiny("fig6");
    assert_eq!(csv_rows(&store, "fig6-times.csv").len(), 9 * 3);
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("<a href=\"#fig6\">Figure 6</a>"));
    assert!(page.contains("<figure id=\"fig6\">"));
}

#[test]
fn table2_has_a_row_for_every_method_and_sigma() {
    let (_folder, store) = run_tiny("table2");
    let rows = csv_rows(&store, "table2.csv");
    assert_eq!(rows.len(), 21 * 2);
    assert!(rows.iter().all(|row| row.contains(",run,")));
}

/// Small steps name their protocol and stand beside the reading as stated. A part of them: accounting for
/// noise as small as theirs is slow.
#[test]
fn small_steps_stand_beside_the_table_as_stated() {
    let folder = tempfile::tempdir().unwrap();
    let (store, options) = (Store::new(folder.path()), options(folder.path()));
    run_some("table2-small-steps", &store, &options, 4);
    let rows = csv_rows(&store, "table2-small-steps.csv");
    assert_eq!(rows.len(), 21 * 2);
    assert!(rows.iter().all(|row| row.contains(",small-steps,")));
    let run = rows.iter().filter(|row| row.contains(",run,"));
    // Without noise both columns are one training, and it comes first.
    assert_eq!(run.map(|row| row.contains("no noise")).collect::<Vec<_>>(), [false, true, true]);
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("in small steps, 0 of 0 as stated"), "both readings are counted");
    // Noise of the stated B on 128 records: what is spent is σ·128/B.
    let cell = store.read("table2-small-steps", "dp-b16384-sigma10-seed0").unwrap().unwrap();
    assert_eq!(cell.config["protocol"], "small-steps");
    assert_eq!(cell.result["noise_multiplier"], 10.0 * 128.0 / 16384.0);
    // Verdicts under it are written once the table is run.
    let claims = csv_rows(&store, "claims.csv");
    assert!(claims.iter().all(|row| row.contains(",as-stated,")), "{claims:?}");
}

/// Table 3, trained: the rows that carry the claim, with the optimiser it needs.
#[test]
fn a_part_of_table3_trained_names_its_optimiser() {
    let folder = tempfile::tempdir().unwrap();
    let (store, options) = (Store::new(folder.path()), options(folder.path()));
    run_some("table3-trained", &store, &options, 2);
    let rows = csv_rows(&store, "table3-trained.csv");
    assert_eq!(rows.len(), 7 * 2);
    assert!(rows.iter().all(|row| row.contains(",trained,")));
    let run: Vec<&String> = rows.iter().filter(|row| row.contains(",run,")).collect();
    assert!(run.len() == 2 && run.iter().all(|row| row.contains("no noise")), "{run:?}");
    let cell = store.read("table3-trained", "none-b16384-sigma0-seed0").unwrap().unwrap();
    assert_eq!(
        (&cell.config["batch"], &cell.config["schedule"]["decay"]),
        (&128.into(), &"cosine".into())
    );
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("SGD with momentum 0.9"));
}

/// Expected and measured stand beside each other for every mean, and a training has its records' turns.
#[test]
fn theory_has_a_row_for_every_mean() {
    let (folder, store) = run_tiny("theory");
    let rows = csv_rows(&store, "theory.csv");
    let of = |what: &str| rows.iter().filter(|row| row.starts_with(what)).count();
    assert_eq!((of("gradients-d,"), of("gradients-batch,"), of("gradients-clip,")), (6, 6, 5));
    assert_eq!((of("training-cnn,"), of("training-scattering,")), (3, 3));
    for row in &rows {
        let number = |at: usize| row.split(',').nth(at).unwrap().parse::<f64>().unwrap();
        // The direction's noise under DP over three repeats, in as few as five dimensions.
        let ratio = number(11) / number(10);
        assert!(number(10) > 0.1 || (0.3..3.0).contains(&ratio), "{row}");
        assert!(!row.starts_with("training") || number(17) > 0.0, "{row}");
    }
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("<figure id=\"theory-crossing\">"));
    assert!(page.contains("<figure id=\"theory-certified\">"));
}

#[test]
fn equal_epsilon_has_a_row_for_every_model_and_arm() {
    let (folder, store) = run_tiny("equal-epsilon");
    let rows = csv_rows(&store, "equal-epsilon.csv");
    assert_eq!(rows.len(), 2 * 3);
    assert!(rows.iter().all(|row| row.split(',').nth(5) == Some("1")), "{rows:?}");
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("At equal ε GeoDP is ahead of DP"));
}

/// The ResNet is slow in tests: a part of its table, which draws the rest as not run.
#[test]
fn a_part_of_table3_is_drawn_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (store, options) = (Store::new(folder.path()), options(folder.path()));
    run_some("table3", &store, &options, 4);
    let rows = csv_rows(&store, "table3.csv");
    assert_eq!(rows.len(), 21 * 2);
    assert_eq!(rows.iter().filter(|row| row.contains(",run,")).count(), 2);
    assert_eq!(rows.iter().filter(|row| row.contains(",not run,")).count(), 40);
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("40 of 42 cells of this table are not run yet"));

    // A cell that another version ran by another protocol is neither shown nor kept.
    let table = catalogue().into_iter().find(|e| e.id() == "table3").unwrap();
    let left = table.missing(&options, &store).unwrap().len();
    let mut other = store.read("table3", "dp-b8192-sigma0.1-seed0").unwrap().unwrap();
    other.config["rates"] = serde_json::json!([1.0]);
    store.write(&other).unwrap();
    assert_eq!(table.missing(&options, &store).unwrap().len(), left + 1);
    draw(&store).unwrap();
    let rows = csv_rows(&store, "table3.csv");
    assert_eq!(rows.iter().filter(|row| row.contains(",run,")).count(), 1);
}

#[test]
fn equal_privacy_has_a_row_for_every_method_and_sigma() {
    let (_folder, store) = run_tiny("privacy");
    let rows = csv_rows(&store, "privacy.csv");
    assert_eq!(rows.len(), 3 * 5);
    assert!(rows.iter().all(|row| row.contains(",run,")));
}

/// Certified GeoDP's ε is DP's to a hundredth at the same σ, GeoDP's is of another kind, and every step
/// of a certified training is counted.
#[test]
fn certified_has_a_row_for_every_model_batch_and_arm() {
    let (folder, store) = run_tiny("certified");
    let rows = csv_rows(&store, "certified.csv");
    assert_eq!(rows.len(), 2 * 3 * 4);
    let field = |row: &str, at: usize| row.split(',').nth(at).unwrap().to_owned();
    let number = |row: &str, at: usize| field(row, at).parse::<f64>().unwrap();
    for arms in rows.chunks(4) {
        let kinds: Vec<String> = arms.iter().map(|row| field(row, 11)).collect();
        assert_eq!(kinds, ["certified", "certified", "conditional", "certified"]);
        let epsilon = |at: usize| number(&arms[at], 10);
        assert!(epsilon(1) > epsilon(0) && epsilon(1) < 1.02 * epsilon(0), "{arms:?}");
        for row in [&arms[1], &arms[3]] {
            let counted: f64 = (13..16).map(|at| number(row, at)).sum();
            assert_eq!(counted, number(row, 8), "{row}");
        }
        assert_eq!(number(&arms[3], 14), 0.0, "polar steps only");
    }
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("points of DP in") && page.contains("conditional"));
}

/// A cell of Table 2 with the same settings is not trained again.
#[test]
fn equal_privacy_takes_what_table2_has() {
    let folder = tempfile::tempdir().unwrap();
    let (store, options) = (Store::new(folder.path()), options(folder.path()));
    let key = "dp-b16384-sigma1-seed0";
    let table = catalogue().into_iter().find(|e| e.id() == "table2").unwrap();
    let at = table.cells(&options).iter().position(|c| c.key == key).unwrap();
    run_some("table2", &store, &options, at + 1);
    let mut lent = store.read("table2", key).unwrap().unwrap();
    lent.result["accuracy"] = serde_json::json!(0.123);
    store.write(&lent).unwrap();
    run_some("privacy", &store, &options, 2);
    let taken = store.read("privacy", key).unwrap().unwrap();
    assert_eq!(taken.result, lent.result);
}

#[test]
fn claims_have_nine_rows_whatever_was_run() {
    let (_folder, store) = run_tiny("claims");
    let rows = csv_rows(&store, "claims.csv");
    assert_eq!(rows.len(), 9);
    assert_eq!(rows.iter().filter(|row| row.contains("not run")).count(), 6);
}
