//! An ε that somebody claims, which an audit may refute.

use geodp::Statement;
use serde::{Deserialize, Serialize};

/// A claimed ε with its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// certified, conditional, as published.
    pub kind: String,
    /// Its upper end.
    pub epsilon: f64,
}

/// The claims of a statement; none without privacy.
pub fn claims_of(statement: &Statement) -> Vec<Claim> {
    let claims = statement.claims.iter();
    claims
        .filter_map(|claim| {
            let (epsilon, _) = claim.numbers()?;
            Some(Claim { kind: claim.word().to_owned(), epsilon: epsilon.upper })
        })
        .collect()
}
