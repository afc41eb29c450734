//! Mutations of files: of bytes, lines and numbers, and exchanges with another run.

use super::folders::Files;

/// SplitMix64: a case's number decides everything it does.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(case: u64) -> Self {
        Self(case.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `most`, or 0.
    pub(crate) fn below(&mut self, most: usize) -> usize {
        (self.next() % most.max(1) as u64) as usize
    }
}

/// Files that are mutated; the others are locks and reports.
const NAMES: [&str; 9] = [
    "run.toml",
    "ledger.jsonl",
    "checkpoint",
    "model.safetensors",
    "statement.json",
    "data.csv",
    "data.key",
    "noise.key",
    "metrics.jsonl",
];

/// One to three mutations; says which.
pub(crate) fn mutate(files: &mut Files, other: &Files, random: &mut Random) -> String {
    let mut done = Vec::new();
    for _ in 0..=random.below(3) {
        let name = NAMES[random.below(NAMES.len())];
        let Some(bytes) = files.get_mut(name) else { continue };
        let how = random.below(9);
        match how {
            0 => flip(bytes, random),
            1 => bytes.truncate(random.below(bytes.len())),
            2 => drop(files.remove(name)),
            3 => {
                if let Some(bytes) = other.get(name) {
                    files.insert(name.to_owned(), bytes.clone());
                }
            }
            4 => insert_junk(bytes, random),
            5 => change_number(bytes, random),
            _ => change_lines(bytes, random, how),
        }
        done.push(format!("{name} by {how}"));
    }
    done.join(", ")
}

fn flip(bytes: &mut [u8], random: &mut Random) {
    let at = random.below(bytes.len());
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}

fn insert_junk(bytes: &mut Vec<u8>, random: &mut Random) {
    let junk: [&[u8]; 6] = [b"\n", b"# \n", b"0", b"{\"a\":1}\n", b"\xff\xfe", b"nan"];
    let at = random.below(bytes.len() + 1);
    let junk = junk[random.below(junk.len())];
    bytes.splice(at..at, junk.iter().copied());
}

/// Replaces one run of digits by another number.
fn change_number(bytes: &mut Vec<u8>, random: &mut Random) {
    let digits: Vec<usize> = (0..bytes.len())
        .filter(|at| bytes[*at].is_ascii_digit() && (*at == 0 || !bytes[at - 1].is_ascii_digit()))
        .collect();
    let Some(&start) = digits.get(random.below(digits.len())) else { return };
    let end = (start..bytes.len()).find(|at| !bytes[*at].is_ascii_digit()).unwrap_or(bytes.len());
    let numbers =
        ["0", "1", "6", "60", "99999999999999999999", "1e9", "-3", "18446744073709551615"];
    let number = numbers[random.below(numbers.len())];
    bytes.splice(start..end, number.bytes());
}

/// Removes, repeats or exchanges lines.
fn change_lines(bytes: &mut Vec<u8>, random: &mut Random, how: usize) {
    let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let (one, two) = (random.below(lines.len()), random.below(lines.len()));
    match how {
        6 => drop(lines.remove(one)),
        7 => lines.insert(two, lines[one].clone()),
        _ => lines.swap(one, two),
    }
    *bytes = lines.join(&b'\n');
}
