//! The ledger of a data set: runs add up, none starts beyond the total, nothing is taken back.

use geodp_account::{
    Accountant, Adjacency, Arithmetic, DataLedger, DataLedgerRecord, Error, Event, PldAccountant,
};
use std::path::Path;

fn record(run: &str, steps: u64) -> DataLedgerRecord {
    DataLedgerRecord {
        run: run.to_owned(),
        unit: "record".to_owned(),
        arithmetic: Arithmetic::FloatingPoint,
        noise_draws: 1000 * steps,
        event: Event::sampled_gaussian(0.01, 1.0),
        count: steps,
    }
}

fn open(path: &Path, total: Option<f64>) -> Result<DataLedger, Error> {
    DataLedger::open(path, 1e-5, total)
}

#[test]
fn two_runs_fit_and_the_third_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("patients.ledger");
    open(&path, Some(2.0)).unwrap().charge(record("a", 300)).unwrap();
    let alone = open(&path, None).unwrap().claim().unwrap();
    let by_hand = |steps: u64| {
        let mut accountant = PldAccountant::new(Adjacency::ZeroOut);
        accountant.compose(&Event::sampled_gaussian(0.01, 1.0), steps).unwrap();
        accountant.epsilon(1e-5).unwrap()
    };
    assert!(alone.upper() >= by_hand(300).lower && alone.upper() < 1.01 * by_hand(300).upper);
    open(&path, Some(2.0)).unwrap().charge(record("b", 300)).unwrap();
    let mut ledger = open(&path, None).unwrap();
    let both = ledger.claim().unwrap();
    assert!(both.epsilon().lower > alone.upper() && both.upper() <= 2.0, "{both}");
    assert!(both.upper() >= by_hand(600).lower && both.upper() < 1.01 * by_hand(600).upper);
    let error = ledger.charge(record("c", 1000)).unwrap_err().to_string();
    assert!(error.contains("above its limit of 2") && error.contains("2 runs"), "{error}");
    assert!(!ledger.knows("c") && ledger.knows("a") && ledger.runs() == 2);
    // Nothing was written of it, and a run without noise never fits.
    drop(ledger);
    let mut ledger = open(&path, None).unwrap();
    assert_eq!((ledger.runs(), ledger.claim().unwrap()), (2, both));
    let open_run = DataLedgerRecord { event: Event::NoPrivacy, ..record("d", 1) };
    assert!(ledger.charge(open_run).is_err());
    // Whoever replays steps pays again under the same name.
    ledger.charge(record("a", 10)).unwrap();
    assert_eq!(ledger.runs(), 2);
}

#[test]
fn another_total_and_an_altered_file_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    open(&path, Some(2.0)).unwrap().charge(record("a", 300)).unwrap();
    let error = open(&path, Some(20.0)).unwrap_err().to_string();
    assert!(error.contains("total_epsilon 20"), "{error}");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("2.0,", "20.0,")).unwrap();
    assert!(matches!(open(&path, None), Err(Error::Ledger { line: 1, .. })));
    std::fs::write(&path, text.replace("\"count\":300", "\"count\":3")).unwrap();
    assert!(matches!(open(&path, None), Err(Error::Ledger { line: 2, .. })));
    // A line torn by a crash was never acknowledged.
    std::fs::write(&path, format!("{text}{{\"run\":\"b\"")).unwrap();
    assert_eq!(open(&path, None).unwrap().runs(), 1);
}

/// Eight threads race for room for five: the lock lets in exactly as many as fit.
#[test]
fn two_at_once_do_not_both_find_the_last_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let whole = {
        let mut ledger = DataLedger::open(&folder.path().join("size"), 1e-5, None).unwrap();
        for run in 0..5 {
            ledger.charge(record(&run.to_string(), 100)).unwrap();
        }
        ledger.claim().unwrap().upper()
    };
    let fitted: usize = std::thread::scope(|scope| {
        let tasks: Vec<_> = (0..8)
            .map(|run| {
                let path = &path;
                scope.spawn(move || {
                    let mut ledger = open(path, Some(whole)).unwrap();
                    usize::from(ledger.charge(record(&run.to_string(), 100)).is_ok())
                })
            })
            .collect();
        tasks.into_iter().map(|task| task.join().unwrap()).sum()
    });
    assert_eq!(fitted, 5);
    assert_eq!(open(&path, None).unwrap().runs(), 5);
}

#[cfg(unix)]
#[test]
fn the_file_is_its_owners() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    drop(open(&path, None).unwrap());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

/// An ε for rows and one for people are not added.
#[test]
fn runs_of_another_unit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = DataLedger::open(&folder.path().join("l"), 1e-5, None).unwrap();
    ledger.charge(record("a", 10)).unwrap();
    let patient = DataLedgerRecord { unit: "patient".to_owned(), ..record("b", 10) };
    let refused = ledger.charge(patient).unwrap_err().to_string();
    assert!(refused.contains("one record") && refused.contains("one patient"), "{refused}");
    assert_eq!(ledger.runs(), 1);
}
