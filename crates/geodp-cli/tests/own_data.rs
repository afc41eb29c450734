//! Tables as people keep them, and runs that stand on their own.

use crate::common;

use common::{Bench, complaint};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

fn text(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn trained(bench: &Bench, run: &str, more: &[&str]) -> String {
    let more: Vec<&str> = ["--steps", "20", "--seed", "1"].iter().chain(more).copied().collect();
    let output = bench.geodp(&bench.train(run, &more));
    assert!(output.status.success(), "{}", complaint(&output));
    complaint(&output)
}

fn edit(bench: &Bench, file: &str, change: impl Fn(&str) -> String) {
    let text = std::fs::read_to_string(bench.path(file)).unwrap();
    let changed = change(&text);
    assert_ne!(changed, text, "{file}: nothing to change");
    std::fs::write(bench.path(file), changed).unwrap();
}

/// USERS 3: changing the schema's file, the current folder or the run's place changes no answer, and
/// changing the run's own copy or the records is noticed.
#[test]
fn a_finished_run_stands_on_its_own() {
    let bench = Bench::new();
    trained(&bench, "run", &[]);
    let before = text(&bench.geodp(&["predict", "run", "data.csv"]));
    assert_eq!(before.lines().count(), 1201);
    edit(&bench, "schema.toml", |schema| schema.replace("range = [0, 1]", "range = [0, 9]"));
    std::fs::create_dir(bench.path("elsewhere")).unwrap();
    std::fs::rename(bench.path("run"), bench.path("elsewhere/moved")).unwrap();
    assert_eq!(text(&bench.geodp(&["predict", "elsewhere/moved", "data.csv"])), before);
    let mut there = bench.command(&["evaluate", "moved", "--json"]);
    let output = there.current_dir(bench.path("elsewhere")).output().unwrap();
    assert!(output.status.success(), "{}", complaint(&output));
    let measured: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(measured["auc"].as_f64().unwrap() > 0.7, "{measured}");
    assert_eq!(measured["confusion"].as_array().unwrap().len(), 2);
    let output = bench.geodp(&["report", "elsewhere/moved"]);
    assert!(output.status.success(), "{}", complaint(&output));
    let card = std::fs::read_to_string(bench.path("elsewhere/moved/MODEL_CARD.md")).unwrap();
    assert!(card.starts_with("---\n") && card.contains("certified ε"), "{card}");
    // Accuracy on held-back records is the owner's.
    assert!(card.contains("Measured on private records only") && !card.contains(" % "), "{card}");

    let model = "elsewhere/moved";
    edit(&bench, "elsewhere/moved/schema.toml", |s| {
        s.replace("[\"no\", \"yes\"]", "[\"yes\", \"no\"]")
    });
    for args in [vec!["predict", model, "data.csv"], vec!["evaluate", model], vec!["report", model]]
    {
        let output = bench.geodp(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(complaint(&output).contains("is not as its run left it"), "{}", complaint(&output));
    }
    edit(&bench, "elsewhere/moved/schema.toml", |s| {
        s.replace("[\"yes\", \"no\"]", "[\"no\", \"yes\"]")
    });
    // Another order of rows would hold other rows back: evaluation on rows that were trained on.
    edit(&bench, "data.csv", |csv| {
        let mut lines: Vec<&str> = csv.lines().collect();
        lines[1..].reverse();
        lines.join("\n")
    });
    let output = bench.geodp(&["evaluate", model]);
    assert!(complaint(&output).contains("fingerprint differs"), "{}", complaint(&output));
}

/// USERS 1 and 4: what reading changed is said, loudly where it is most of a column, and so is an
/// identifier that rows share.
#[test]
fn what_was_changed_is_said() {
    let bench = Bench::new();
    edit(&bench, "schema.toml", |s| s.replace("[\"red\", \"blue\"]", "[\"Red\", \"Blue\"]"));
    edit(&bench, "data.csv", |csv| {
        let ids = csv.lines().enumerate().map(|(at, line)| match at {
            0 => format!("{line},patient\n"),
            _ => format!("{line},p{}\n", at / 3),
        });
        ids.collect()
    });
    let said = trained(&bench, "run", &[]);
    assert!(said.contains("1200 counted as \"other\""), "{said}");
    assert!(said.contains("warning: data.csv: column \"color\": 100 % of its cells"), "{said}");
    assert!(said.contains("declare [unit] column = \"patient\""), "{said}");
    let page = std::fs::read_to_string(bench.path("run/report.html")).unwrap();
    let owner = page.find("For the data").unwrap();
    assert!(
        page.find("100 % of its cells").unwrap() > owner,
        "private counts outside their section"
    );
    let output = bench.geodp(&["predict", "run", "data.csv", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["imported"]["columns"][2]["other"], 1200);
    assert_eq!(found["identifiers"], serde_json::json!(["patient"]));
    assert_eq!(found["rows"][3]["identifiers"][0], "p1");
}

/// USERS 6 and 13: the same table by any name, packed, or through a pipe; bad rows are passed over.
#[test]
fn tables_come_in_many_forms() {
    let bench = Bench::new();
    let csv = std::fs::read(bench.path("data.csv")).unwrap();
    let tabs = String::from_utf8(csv.clone()).unwrap().replace(',', "\t");
    std::fs::write(bench.path("data.tsv"), tabs).unwrap();
    std::fs::write(bench.path("DATA.CSV"), &csv).unwrap();
    trained(&bench, "csv", &[]);
    let model = |run: &str| std::fs::read(bench.path(run).join("model.safetensors")).unwrap();
    for (run, file) in [("tsv", "data.tsv"), ("capitals", "DATA.CSV")] {
        let args: Vec<&str> = bench
            .train(run, &["--steps", "20", "--seed", "1"])
            .into_iter()
            .map(|arg| if arg == "data.csv" { file } else { arg })
            .collect();
        let output = bench.geodp(&args);
        assert!(output.status.success(), "{}", complaint(&output));
        assert!(model(run) == model("csv"), "{file} gives other weights");
    }
    let mut predict = bench.command(&["predict", "csv", "-", "--keep", "name"]);
    predict.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = predict.spawn().unwrap();
    let rows = b"name,a,b,color\nann,0.1,0.2,red\nbob,none,0.2,red\neve,0.9,0.9,blue\n";
    child.stdin.take().unwrap().write_all(rows).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", complaint(&output));
    let lines: Vec<String> = text(&output).lines().map(str::to_owned).collect();
    assert_eq!(lines[0], "row,name,class,p_no,p_yes");
    assert!(lines[1].starts_with("1,ann,no") && lines[2].starts_with("3,eve,yes"), "{lines:?}");
    let said = complaint(&output);
    assert!(said.contains("line 3, column 2 (a): \"none\" is not a number"), "{said}");
}

/// USERS 14: a model that does not fit is refused before anything is written; a closed pipe is no error;
/// an interrupted training says so by its exit code.
#[test]
fn small_things_are_as_people_expect() {
    let bench = Bench::new();
    let output = bench.geodp(&bench.train("cnn", &["--model", "cnn"]));
    assert_eq!(output.status.code(), Some(2));
    let said = complaint(&output);
    assert!(said.contains("CNN is for 784 input values, but the records of data have 5"), "{said}");
    assert!(!bench.path("cnn").exists());

    trained(&bench, "run", &[]);
    let mut predict = bench.command(&["predict", "run", "data.csv"]);
    predict.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = predict.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", complaint(&output));
    assert!(!complaint(&output).contains("ipe"), "{}", complaint(&output));
}

#[cfg(unix)]
#[test]
fn an_interrupted_training_exits_with_130() {
    let bench = Bench::new();
    let args = bench.train("run", &["--steps", "1000000", "--noise-multiplier", "1"]);
    let mut train = bench.command(&args);
    let child = train.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    while !bench.path("run/metrics.jsonl").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let killed =
        std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", complaint(&output));
    assert!(complaint(&output).contains("geodp train --resume"), "{}", complaint(&output));
}

/// What the decoder of Parquet stumbles over is an error of the file, and nothing else is on the terminal.
#[test]
fn a_damaged_parquet_file_is_refused_in_one_sentence() {
    let bench = Bench::new();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../geodp-data/tests/corpus/parquet");
    let file = corpus.join("long_text.parquet");
    let output = bench.geodp(&["data", "schema", "--look", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = complaint(&output);
    assert!(said.starts_with("error: ") && said.trim().lines().count() == 1, "{said}");
    assert!(said.contains("other lengths than they have"), "{said}");
}

/// A number is learnt within its declared range, measured in its own unit, predicted and exported.
#[test]
fn numbers_are_learnt_in_their_range() {
    let bench = Bench::new();
    edit(&bench, "data.csv", |csv| {
        let cost = |line: &str| {
            let cells: Vec<&str> = line.split(',').collect();
            let (a, b): (f64, f64) = (cells[0].parse().unwrap(), cells[1].parse().unwrap());
            format!("{line},{:.3}\n", 100.0 + 300.0 * a + 100.0 * b)
        };
        let mut lines = csv.lines();
        let heading = lines.next().unwrap();
        std::iter::once(format!("{heading},cost\n")).chain(lines.map(cost)).collect()
    });
    for loss in ["squared", "huber"] {
        let schema = Bench::new();
        let plain = std::fs::read_to_string(schema.path("schema.toml")).unwrap();
        let label = format!("column = \"cost\"\nrange = [0, 500]\nloss = \"{loss}\"");
        let number = plain.replace("column = \"label\"\nclasses = [\"no\", \"yes\"]", &label);
        std::fs::write(bench.path("schema.toml"), number).unwrap();
        let more = ["--model", "logistic", "--epsilon", "8", "--epochs", "20", "--seed", "1"];
        let output = bench.geodp(&bench.train(loss, &more));
        assert!(output.status.success(), "{}", complaint(&output));
        assert!(text(&output).contains("RMSE"), "{}", text(&output));
        assert!(complaint(&output).starts_with("Linear regression"), "{}", complaint(&output));
        let output = bench.geodp(&["evaluate", loss, "--json"]);
        let measured: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(measured["r_squared"].as_f64().unwrap() > 0.7, "{measured}");
        assert!(measured.get("accuracy").is_none());
        let output = bench.geodp(&["predict", loss, "data.csv"]);
        let csv = text(&output);
        assert!(csv.starts_with("row,predicted_cost\n"), "{}", &csv[..40]);
        let values: Vec<f64> =
            csv.lines().skip(1).map(|l| l.split(',').nth(1).unwrap().parse().unwrap()).collect();
        assert!(values.iter().all(|value| (0.0..=500.0).contains(value)));
        assert!(bench.geodp(&["export", loss, "--onnx", "x.onnx"]).status.success());
    }
}

/// USERS 4: with a declared unit, patients are counted, drawn, held back and named in every claim.
#[test]
fn a_patient_with_all_rows_is_the_unit() {
    let bench = Bench::new();
    edit(&bench, "data.csv", |csv| {
        let ids = csv.lines().enumerate().map(|(at, line)| match at {
            0 => format!("{line},patient\n"),
            _ => format!("{line},p{}\n", at % 300),
        });
        ids.collect()
    });
    edit(&bench, "schema.toml", |s| format!("{s}[unit]\ncolumn = \"patient\"\nmost_rows = 3\n"));
    let said = trained(&bench, "run", &["--holdout", "50", "--noise-multiplier", "1"]);
    assert!(said.contains("one patient with all rows is protected: 250 of them"), "{said}");
    assert!(!said.contains("warning: data.csv"), "{said}");
    let shown: Value =
        serde_json::from_slice(&bench.geodp(&["report", "run", "--json"]).stdout).unwrap();
    let statement = &shown["statement"];
    assert_eq!((&statement["unit"], &statement["records"]), (&"patient".into(), &250.into()));
    let page = std::fs::read_to_string(bench.path("run/report.html")).unwrap();
    assert!(page.contains("any one patient with all rows"), "the page names the unit");
    let ledger = std::fs::read_to_string(bench.path("run/ledger.jsonl")).unwrap();
    let header: Value = serde_json::from_str(ledger.lines().next().unwrap()).unwrap();
    assert!(header.to_string().contains("\"unit\":\"patient\""), "{header}");
    assert!(ledger.contains("0.256"), "q = 64/250 and not 64/1000: {ledger}");
    let output = bench.geodp(&["predict", "run", "data.csv"]);
    assert!(text(&output).starts_with("row,patient,class"));

    let more = ["--release-accuracy", "0.5", "--steps", "3"];
    let output = bench.geodp(&bench.train("x", &more));
    assert!(complaint(&output).contains("would not hide a unit"), "{}", complaint(&output));
    let output = bench.geodp(&["audit", "membership", "run"]);
    assert!(complaint(&output).contains("whole units"), "{}", complaint(&output));
    let audit =
        ["audit", "one-run", "--data", "data.csv", "--schema", "schema.toml", "--out", "audit"];
    let more = ["--steps", "3", "--noise-multiplier", "1", "--canaries", "20", "--json"];
    let output = bench.geodp(&[&audit[..], &more].concat());
    let audit: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(audit["unit"], "patient", "{}", complaint(&output));
    let page = std::fs::read_to_string(bench.path("audit/report.html")).unwrap();
    assert!(page.contains("one patient with all rows"), "the audit names the unit");
    // A ledger of the data set that is about patients takes no run about rows.
    let ledger = ["--data-ledger", "all.ledger", "--steps", "3", "--noise-multiplier", "9"];
    assert!(bench.geodp(&bench.train("first", &ledger)).status.success());
    edit(&bench, "schema.toml", |s| s[..s.find("[unit]").unwrap()].to_owned());
    let output = bench.geodp(&bench.train("second", &ledger));
    assert_eq!(output.status.code(), Some(2), "{}", complaint(&output));
    assert!(complaint(&output).contains("about one patient"), "{}", complaint(&output));
    assert!(!bench.path("second").exists());
}

/// A draft that looked at the records says so in itself, in the statement, and in the model's card.
#[test]
fn a_schema_that_looked_is_never_silent() {
    let bench = Bench::new();
    let open = text(&bench.geodp(&["data", "schema", "data.csv", "--label", "label"]));
    assert!(open.contains("no record was looked at") && !open.contains("0."), "{open}");
    let looked = text(&bench.geodp(&["data", "schema", "data.csv", "--label", "label", "--look"]));
    assert!(looked.contains("THIS WAS NOT PRIVATE"), "{looked}");
    std::fs::write(bench.path("schema.toml"), looked).unwrap();
    let output = bench.geodp(&bench.train("run", &["--steps", "5"]));
    assert!(output.status.success(), "{}", complaint(&output));
    assert!(text(&output).contains("which no ε covers"), "{}", text(&output));
    for file in ["statement.json", "report.html", "MODEL_CARD.md"] {
        let page = std::fs::read_to_string(bench.path("run").join(file)).unwrap();
        assert!(page.contains("looked"), "{file} is silent");
    }
}

/// A folder for each class, from images to predictions.
#[test]
fn folders_of_images_are_classes() {
    let bench = Bench::new();
    let golden =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../geodp-data/tests/golden");
    for (class, file) in [("coloured", "colour.jpg"), ("grey", "grey.jpg")] {
        let folder = bench.path("images").join(class);
        std::fs::create_dir_all(&folder).unwrap();
        for at in 0..60 {
            std::fs::copy(golden.join(file), folder.join(format!("{at}.jpg"))).unwrap();
        }
    }
    let args = ["train", "--data", "images", "--model", "logistic", "--out", "run", "--seed", "1"];
    let more = ["--batch", "30", "--steps", "60", "--epsilon", "8", "--threads", "1"];
    let output = bench.geodp(&args.into_iter().chain(more).collect::<Vec<_>>());
    assert!(output.status.success(), "{}", complaint(&output));
    let output = bench.geodp(&["predict", "run", "images/grey"]);
    let csv = text(&output);
    assert!(csv.starts_with("row,file,class,p_coloured,p_grey\n"), "{csv}");
    assert!(csv.lines().skip(1).all(|line| line.contains(".jpg,grey,")), "{csv}");
    let output = bench.geodp(&["train", "--data", "images", "--schema", "schema.toml"]);
    assert!(complaint(&output).contains("its folders are the classes"), "{}", complaint(&output));
}
