//! The rows of Tables 2 and 3: which method, and what the paper reports for it.
//!
//! Beside the paper's fifteen rows of each table stand six that it lacks: GeoDP at β = 0.01, GeoDP
//! at β* (where its direction error equals DP's), certified GeoDP, the same training without noise,
//! and the control of IS for DP and for GeoDP: as many gradients computed, every one kept.

use geodp::params::ClipKind;
use serde::{Deserialize, Serialize};

/// How the mean gradient is perturbed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Noise {
    /// Not at all; clipped as the others.
    None,
    /// Gaussian noise on coordinates.
    Dp,
    /// Noise on magnitude and angles, with this bounding factor.
    Geodp {
        /// β.
        beta: Beta,
    },
    /// Noise on magnitude and direction with a theorem, or DP's where that is better.
    GeodpCertified,
}

/// A bounding factor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Beta {
    /// As the row says.
    Fixed(f64),
    /// β*, measured by a cell of its own.
    Crossing,
}

/// A training method: one row's left side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// The perturbation.
    pub noise: Noise,
    /// B, before any scaling down of the experiment.
    pub batch: u64,
    /// The clipping rule.
    pub clip: ClipKind,
    /// IS: importance sampling.
    pub importance: bool,
    /// The control of IS: its candidates, all kept.
    #[serde(default, skip_serializing_if = "is_false")]
    pub control: bool,
    /// SUR: selective updates.
    pub select: bool,
}

fn is_false(given: &bool) -> bool {
    !given
}

/// A row: a method and the paper's two accuracies in %, where it has them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// What is trained.
    pub method: Method,
    /// Test accuracy at the table's first and second σ; `None` for rows the paper lacks.
    pub published: Option<[f64; 2]>,
}

impl Method {
    /// A method without add-ons.
    pub const fn plain(noise: Noise, batch: u64) -> Self {
        let (importance, control, select) = (false, false, false);
        Self { noise, batch, clip: ClipKind::Flat, importance, control, select }
    }

    /// Whether it has an add-on.
    pub fn has_add_on(&self) -> bool {
        *self != Self::plain(self.noise, self.batch)
    }

    /// The method whose learning rate it uses: IS and SUR take that of the same perturbation and
    /// clipping, because they change which steps are taken, not how long a step is. Certified GeoDP
    /// takes DP's, whose noise it has.
    pub fn rate_owner(&self) -> Self {
        let noise = match self.noise {
            Noise::GeodpCertified => Noise::Dp,
            other => other,
        };
        Self { noise, importance: false, control: false, select: false, ..*self }
    }

    /// Short name for files, made of ASCII letters, digits, dots and dashes.
    pub fn key(&self) -> String {
        let noise = match self.noise {
            Noise::None => "none".to_owned(),
            Noise::Dp => "dp".to_owned(),
            Noise::Geodp { beta: Beta::Fixed(beta) } => format!("geodp{beta}"),
            Noise::Geodp { beta: Beta::Crossing } => "geodp-star".to_owned(),
            Noise::GeodpCertified => "geodp-certified".to_owned(),
        };
        let mut key = format!("{noise}-b{}", self.batch);
        for (given, word) in self.add_ons() {
            if given {
                key += &format!("-{}", word.to_ascii_lowercase().replace(' ', "-"));
            }
        }
        key
    }

    /// The row's name in tables: `GeoDP+SUR+PSAC`.
    pub fn name(&self) -> String {
        let mut name = match self.noise {
            Noise::None => "no noise".to_owned(),
            Noise::Dp => "DP".to_owned(),
            Noise::Geodp { .. } => "GeoDP".to_owned(),
            Noise::GeodpCertified => "certified GeoDP".to_owned(),
        };
        for (given, word) in self.add_ons() {
            if given {
                name += &format!("+{word}");
            }
        }
        name
    }

    /// β as a table shows it; empty without one.
    pub fn beta_text(&self) -> String {
        match self.noise {
            Noise::Geodp { beta: Beta::Fixed(beta) } => beta.to_string(),
            Noise::Geodp { beta: Beta::Crossing } => "β*".to_owned(),
            _ => String::new(),
        }
    }

    fn add_ons(&self) -> [(bool, &'static str); 5] {
        [
            (self.importance, "IS"),
            (self.control, "IS control"),
            (self.select, "SUR"),
            (self.clip == ClipKind::AutoS, "AUTO-S"),
            (self.clip == ClipKind::Psac, "PSAC"),
        ]
    }
}

/// The smaller B of the tables.
pub const SMALL_BATCH: u64 = 8192;
/// The larger one, which most rows have.
pub const LARGE_BATCH: u64 = 16384;

/// σ of the two columns of Table 2.
pub const TABLE2_SIGMAS: [f64; 2] = [10.0, 1.0];
/// σ of the two columns of Table 3.
pub const TABLE3_SIGMAS: [f64; 2] = [0.1, 0.01];

const fn geodp(beta: f64) -> Noise {
    Noise::Geodp { beta: Beta::Fixed(beta) }
}

/// IS, SUR, AUTO-S, PSAC, SUR+PSAC at B = 16384, in the paper's order.
fn add_ons(noise: Noise, published: [[f64; 2]; 5]) -> impl Iterator<Item = Row> {
    let plain = Method::plain(noise, LARGE_BATCH);
    let methods = [
        Method { importance: true, ..plain },
        Method { select: true, ..plain },
        Method { clip: ClipKind::AutoS, ..plain },
        Method { clip: ClipKind::Psac, ..plain },
        Method { select: true, clip: ClipKind::Psac, ..plain },
    ];
    methods.into_iter().zip(published).map(|(method, p)| Row { method, published: Some(p) })
}

fn row(noise: Noise, batch: u64, published: [f64; 2]) -> Row {
    Row { method: Method::plain(noise, batch), published: Some(published) }
}

/// Rows the paper lacks.
fn ours(noise_free: f64) -> [Row; 6] {
    let ours = |noise, published| Row { method: Method::plain(noise, LARGE_BATCH), published };
    let control = |noise| Row {
        method: Method { control: true, ..Method::plain(noise, LARGE_BATCH) },
        published: None,
    };
    [
        control(Noise::Dp),
        control(geodp(0.1)),
        ours(geodp(0.01), None),
        ours(Noise::Geodp { beta: Beta::Crossing }, None),
        ours(Noise::GeodpCertified, None),
        ours(Noise::None, Some([noise_free; 2])),
    ]
}

/// Table 2: CNN on MNIST, σ = 10 and σ = 1.
pub fn table2() -> Vec<Row> {
    let mut rows = vec![
        row(Noise::Dp, SMALL_BATCH, [87.93, 94.25]),
        row(Noise::Dp, LARGE_BATCH, [88.12, 95.52]),
    ];
    let dp = [[88.43, 95.63], [88.47, 95.75], [88.40, 95.71], [88.48, 95.83], [89.83, 96.91]];
    rows.extend(add_ons(Noise::Dp, dp));
    rows.extend([
        row(geodp(0.1), SMALL_BATCH, [90.31, 96.47]),
        row(geodp(0.1), LARGE_BATCH, [93.58, 98.04]),
        row(geodp(0.5), SMALL_BATCH, [53.80, 60.31]),
    ]);
    let geo = [[93.60, 98.13], [93.68, 98.22], [93.64, 98.17], [94.13, 98.24], [95.27, 98.69]];
    rows.extend(add_ons(geodp(0.1), geo));
    rows.extend(ours(99.11));
    rows
}

/// Table 3: ResNet on CIFAR-10, σ = 0.1 and σ = 0.01.
pub fn table3() -> Vec<Row> {
    let mut rows = vec![
        row(Noise::Dp, SMALL_BATCH, [59.39, 63.27]),
        row(Noise::Dp, LARGE_BATCH, [60.12, 63.84]),
    ];
    let dp = [[60.27, 64.07], [61.73, 64.83], [60.51, 63.91], [61.30, 64.71], [62.91, 65.60]];
    rows.extend(add_ons(Noise::Dp, dp));
    rows.extend([
        row(geodp(1.0), SMALL_BATCH, [61.47, 65.93]),
        row(geodp(1.0), LARGE_BATCH, [63.38, 66.51]),
        row(geodp(0.1), LARGE_BATCH, [65.47, 67.35]),
    ]);
    let geo = [[65.51, 67.35], [65.53, 67.36], [65.58, 67.37], [65.58, 67.38], [66.03, 67.40]];
    rows.extend(add_ons(geodp(0.1), geo));
    rows.extend(ours(67.43));
    rows
}

/// The rows of Table 3 that carry its claim, without add-ons at B = 16384.
pub fn table3_claim() -> Vec<Row> {
    let carries = |row: &Row| row.method.batch == LARGE_BATCH && !row.method.has_add_on();
    table3().into_iter().filter(carries).collect()
}

/// σ of the comparison at equal measured privacy; 1 and 10 are shared with Table 2.
pub const PRIVACY_SIGMAS: [f64; 5] = [1.0, 3.0, 10.0, 30.0, 100.0];

/// The methods of the comparison at equal measured privacy.
pub fn equal_privacy() -> Vec<Row> {
    [Noise::Dp, geodp(0.1), geodp(0.01)]
        .map(|noise| Row { method: Method::plain(noise, LARGE_BATCH), published: None })
        .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_table_has_the_papers_fifteen_rows_and_six_of_ours() {
        for rows in [table2(), table3()] {
            assert_eq!(rows.len(), 21);
            let noisy = rows.iter().filter(|r| r.method.noise != Noise::None);
            assert_eq!(noisy.filter(|r| r.published.is_some()).count(), 15);
            let keys: BTreeSet<String> = rows.iter().map(|r| r.method.key()).collect();
            assert_eq!(keys.len(), 21);
        }
        assert_eq!(table2()[15 - 1].published, Some([95.27, 98.69]));
        assert_eq!(table2()[14].method.key(), "geodp0.1-b16384-sur-psac");
        assert_eq!(table3()[14].method.name(), "GeoDP+SUR+PSAC");
        assert_eq!(table3()[15].method.name(), "DP+IS control");
        assert_eq!(table3()[16].method.key(), "geodp0.1-b16384-is-control");
        assert_eq!(table3()[19].method.key(), "geodp-certified-b16384");
        assert_eq!(table3()[19].method.rate_owner(), table3()[1].method);
        let claim: Vec<String> = table3_claim().iter().map(|r| r.method.key()).collect();
        let plain =
            ["dp", "geodp1", "geodp0.1", "geodp0.01", "geodp-star", "geodp-certified", "none"];
        assert_eq!(claim, plain.map(|name| format!("{name}-b16384")));
    }
}
