//! How many inputs a reader is tried with: few in every run of the tests, a million by
//! `GEODP_FUZZ_CASES=1000000`. What once failed is kept in `proptest-regressions` and tried first.

use proptest::prelude::*;
use proptest::sample::Index;

pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let asked = std::env::var("GEODP_FUZZ_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig { max_shrink_iters: 200, ..ProptestConfig::with_cases(asked.unwrap_or(usual)) }
}

/// One change of a file.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "not every test file damages files")]
pub(crate) enum Damage {
    /// One byte becomes another.
    Set(Index, u8),
    /// These bytes come in between.
    Insert(Index, Vec<u8>),
    /// So many bytes are gone.
    Remove(Index, usize),
    /// So many bytes stand there so many times.
    Repeat(Index, usize, usize),
    /// The rest is gone.
    Cut(Index),
}

/// Up to seven changes, most of them of a byte.
#[allow(dead_code, reason = "not every test file damages files")]
pub(crate) fn damages() -> impl Strategy<Value = Vec<Damage>> {
    // Bytes that mean something to a format: ends, signs, the largest length.
    let byte =
        prop_oneof![any::<u8>(), prop::sample::select(b"\0\x01\x7f\x80\xff\n,\"-.[]=eN".to_vec())];
    let one = prop_oneof![
        8 => (any::<Index>(), byte.clone()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        2 => (any::<Index>(), prop::collection::vec(byte, 1..6)).prop_map(|(at, b)| Damage::Insert(at, b)),
        1 => (any::<Index>(), 1..20usize).prop_map(|(at, count)| Damage::Remove(at, count)),
        1 => (any::<Index>(), 1..20usize, 2..40usize).prop_map(|(at, n, k)| Damage::Repeat(at, n, k)),
        1 => any::<Index>().prop_map(Damage::Cut),
    ];
    prop::collection::vec(one, 1..8)
}

#[allow(dead_code, reason = "not every test file damages files")]
pub(crate) fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        let size = bytes.len();
        if size == 0 {
            break;
        }
        let stretch = |at: &Index, count: usize| {
            let from = at.index(size);
            from..size.min(from + count)
        };
        match damage {
            Damage::Set(at, byte) => bytes[at.index(size)] = *byte,
            Damage::Insert(at, new) => {
                bytes.splice(at.index(size)..at.index(size), new.iter().copied());
            }
            Damage::Remove(at, count) => {
                bytes.drain(stretch(at, *count));
            }
            Damage::Repeat(at, count, times) => {
                let part = bytes[stretch(at, *count)].repeat(*times);
                bytes.splice(at.index(size)..at.index(size), part);
            }
            Damage::Cut(at) => bytes.truncate(at.index(size)),
        }
    }
    bytes
}
