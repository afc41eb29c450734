//! How many inputs a reader is tried with: few in every run of the tests, a million by
//! `GEODP_FUZZ_CASES=1000000`. What once failed is tried first: proptest keeps its seed in
//! `<test>.proptest-regressions` beside the test, to be committed with the fix.

use proptest::prelude::ProptestConfig;

pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let asked = std::env::var("GEODP_FUZZ_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig { max_shrink_iters: 200, ..ProptestConfig::with_cases(asked.unwrap_or(usual)) }
}
