//! The claims of a statement that an audit may refute.

use geodp::Statement;
use geodp_account::Claim;

/// The claims of a statement; none without privacy.
pub fn claims_of(statement: &Statement) -> Vec<Claim> {
    statement.claims.iter().filter(|claim| claim.is_private()).cloned().collect()
}
