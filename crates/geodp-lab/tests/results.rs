//! The results in this repository stay readable: every cell is still recognised as its job's, and the
//! page, the tables and the figures drawn from them are those that stand beside them.

use geodp_lab::{Store, catalogue, draw};
use std::path::{Path, PathBuf};

fn results() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn drawing_again_gives_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    copy(&results().join("cells"), &folder.path().join("cells"));
    draw(&Store::new(folder.path())).unwrap();
    let mut compared = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            continue;
        }
        let name = entry.file_name().into_string().unwrap();
        let kept = std::fs::read_to_string(results().join(&name)).unwrap_or_default();
        let drawn = std::fs::read_to_string(entry.path()).unwrap();
        assert!(kept == drawn, "{name} differs: geodp lab draw --out results");
        compared += 1;
    }
    assert!(compared > 50, "{compared}");
}

/// A renamed field of a config would make the lab forget a cell and run it again.
#[test]
fn no_cell_is_forgotten() {
    let store = Store::new(results());
    for experiment in catalogue() {
        let Some(settings) = store.settings(experiment.id()).unwrap() else { continue };
        let options = geodp_lab::Options {
            size: settings.size,
            seeds: settings.seeds,
            epochs: settings.epochs,
            data_dir: PathBuf::new(),
        };
        let missing = experiment.missing(&options, &store).unwrap();
        let missing: Vec<&str> = missing.iter().map(|cell| cell.key.as_str()).collect();
        let known: Vec<String> = experiment.cells(&options).into_iter().map(|c| c.key).collect();
        let kept = results().join("cells").join(experiment.id());
        for file in std::fs::read_dir(kept).unwrap().map(Result::unwrap) {
            let name = file.file_name().into_string().unwrap();
            let key = name.trim_end_matches(".json");
            let fine =
                key == "settings" || known.iter().any(|k| k == key) && !missing.contains(&key);
            assert!(fine, "{}: cell {key} is not recognised any more", experiment.id());
        }
    }
}
