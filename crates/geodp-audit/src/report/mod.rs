//! What audits look like on a page: one section each, with a picture, every ε with its kind.

mod mechanism;
mod membership;
mod one_run;
mod record_loss;

pub use mechanism::mechanism_section;
pub use membership::membership_section;
pub use one_run::one_run_section;
pub use record_loss::record_loss_section;

use geodp_account::Claim;
use geodp_report::{Page, Section, format};

/// A page of one section.
pub fn page(title: &str, subtitle: &str, section: Section) -> String {
    Page::new(title)
        .subtitle(subtitle)
        .section(section)
        .footer(format!("geodp {}", env!("CARGO_PKG_VERSION")))
        .to_html()
}

/// An audited bound with three significant digits, rounded down: it never says more than was shown.
pub(crate) fn lower(epsilon: f64) -> String {
    if epsilon <= 0.0 {
        return "0".to_owned();
    }
    let unit = 10f64.powi(epsilon.log10().floor() as i32 - 2);
    format::significant((epsilon / unit).floor() * unit, 3)
}

/// "certified ε 1.2".
pub(crate) fn claim_text(claim: &Claim) -> String {
    claim.short()
}

#[cfg(test)]
mod tests {
    use super::lower;

    #[test]
    fn bounds_are_rounded_down() {
        assert_eq!(lower(1.2399), "1.23");
        assert_eq!(lower(0.0), "0");
        assert_eq!(lower(12.99), "12.9");
    }
}
