//! The ledger: every alteration is found and named by its line; what a crash leaves is recovered.

use geodp_account::{
    Accountant, Adjacency, Arithmetic, Denominator, Error, Event, Ledger, LedgerHeader,
    LedgerWriter, PldAccountant, Terms,
};
use std::path::PathBuf;

const TERMS: Terms = Terms {
    adjacency: Adjacency::ZeroOut,
    delta: 1e-5,
    arithmetic: Arithmetic::FloatingPoint,
    denominator: Denominator::ExpectedBatch,
    noise_draws: 0,
};

fn written(charges: u64) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.jsonl");
    let header = LedgerHeader::new(TERMS, "plan 7", None);
    let mut writer = LedgerWriter::create(&path, &header).unwrap();
    for charge in 1..=charges {
        writer.append(10 * charge, &Event::sampled_gaussian(0.01, 1.0), 10).unwrap();
    }
    (folder, path)
}

#[test]
fn comes_back_and_adds_up() {
    let (_folder, path) = written(3);
    let ledger = Ledger::read(&path).unwrap();
    assert_eq!((ledger.records.len(), ledger.steps(), ledger.torn), (3, 30, false));
    assert_eq!(ledger.header.plan, "plan 7");
    let mut by_hand = PldAccountant::new(Adjacency::AddRemove);
    by_hand.compose(&Event::sampled_gaussian(0.01, 1.0), 30).unwrap();
    let expected = by_hand.epsilon(1e-5).unwrap();
    let total = ledger.account().unwrap().claim().unwrap().epsilon();
    assert_eq!((total.lower, total.upper), (expected.lower, expected.upper));
    let (writer, _) = LedgerWriter::open(&path).unwrap();
    assert_eq!(writer.account(), &ledger.account().unwrap());
}

/// Every byte, changed in every line, is found in that line (or, for the chain, the next).
#[test]
fn any_changed_byte_is_found_with_its_line() {
    let (_folder, path) = written(2);
    let bytes = std::fs::read(&path).unwrap();
    for at in 0..bytes.len() {
        let line = bytes[..at].iter().filter(|b| **b == b'\n').count() + 1;
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        match Ledger::parse(&changed) {
            Err(Error::Ledger { line: found, .. }) => {
                assert!(found == line || found == 1, "byte {at} of line {line}: found in {found}");
            }
            // The last line break is what makes the last line whole.
            Ok(ledger) => {
                assert!(at == bytes.len() - 1 && ledger.torn && ledger.records.len() == 1)
            }
            Err(other) => panic!("byte {at}: {other}"),
        }
    }
}

#[test]
fn removed_moved_and_repeated_lines_are_found() {
    let (_folder, path) = written(4);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let broken_at = |order: &[usize]| {
        let text: String = order.iter().map(|at| format!("{}\n", lines[*at])).collect();
        match Ledger::parse(text.as_bytes()) {
            Err(Error::Ledger { line, .. }) => line,
            other => panic!("{order:?} was accepted: {other:?}"),
        }
    };
    assert_eq!(broken_at(&[0, 1, 3, 4]), 3);
    assert_eq!(broken_at(&[0, 2, 1, 3, 4]), 2);
    assert_eq!(broken_at(&[0, 1, 1, 2, 3, 4]), 3);
    assert_eq!(broken_at(&[1, 2, 3, 4]), 1);
    assert_eq!(broken_at(&[]), 1);
}

#[test]
fn a_cut_end_is_found_by_whoever_knows_the_head() {
    let (_folder, path) = written(4);
    let whole = Ledger::read(&path).unwrap();
    let (records, head) = (whole.records.len() as u64, whole.head().to_owned());
    let text = std::fs::read_to_string(&path).unwrap();
    let cut: String = text.lines().take(4).map(|line| format!("{line}\n")).collect();
    let cut = Ledger::parse(cut.as_bytes()).unwrap();
    assert!(whole.verify_against(records, &head).is_ok());
    assert!(whole.verify_against(3, cut.head()).is_ok(), "an older checkpoint still fits");
    let error = cut.verify_against(records, &head).unwrap_err().to_string();
    assert!(error.contains("line 5") && error.contains("missing"), "{error}");
    assert!(whole.verify_against(3, &head).is_err());
}

#[test]
fn a_torn_line_is_passed_over_and_then_overwritten() {
    let (_folder, path) = written(2);
    let bytes = std::fs::read(&path).unwrap();
    let third = bytes.len() - 40;
    std::fs::write(&path, &bytes[..third]).unwrap();
    let (mut writer, ledger) = LedgerWriter::open(&path).unwrap();
    assert!(ledger.torn && ledger.records.len() == 1);
    writer.append(20, &Event::gaussian(2.0), 1).unwrap();
    let ledger = Ledger::read(&path).unwrap();
    assert_eq!((ledger.records.len(), ledger.torn), (2, false));
    assert_eq!(ledger.head(), writer.head());
}

#[test]
fn an_event_out_of_range_is_not_written() {
    let (_folder, path) = written(1);
    let (mut writer, _) = LedgerWriter::open(&path).unwrap();
    assert!(writer.append(20, &Event::sampled_gaussian(2.0, 1.0), 1).is_err());
    assert_eq!(Ledger::read(&path).unwrap().records.len(), 1);
}

/// A header's δ is held to its range whoever wrote it, and the last block's start is known.
#[test]
fn headers_are_checked_and_blocks_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.jsonl");
    let bad = LedgerHeader::new(Terms { delta: 2.0, ..TERMS }, "", None);
    assert!(LedgerWriter::create(&path, &bad).is_err());
    let header = LedgerHeader::new(TERMS, "", None);
    let mut writer = LedgerWriter::create(&path, &header).unwrap();
    let event = Event::sampled_gaussian(0.01, 1.0);
    for (step, before) in [(10, 0), (20, 10), (20, 10), (30, 20)] {
        writer.append(step, &event, 10).unwrap();
        assert_eq!(Ledger::read(&path).unwrap().steps_before_last_block(), before);
    }
}

/// A link in the ledger's place is replaced, not followed.
#[cfg(unix)]
#[test]
fn a_link_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("ledger.jsonl"), folder.path().join("other"));
    std::fs::write(&other, "precious").unwrap();
    std::os::unix::fs::symlink(&other, &path).unwrap();
    LedgerWriter::create(&path, &LedgerHeader::new(TERMS, "", None)).unwrap();
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "precious");
    assert!(Ledger::read(&path).is_ok());
}
