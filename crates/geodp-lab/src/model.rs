//! The two models of the additions to the paper (`certified`, `federated`), and how each sees its records.

use crate::Error;
use geodp_data::{FeatureSpec, Split, Storage};
use geodp_nn::{Network, NetworkSpec};
use serde::{Deserialize, Serialize};

/// Which model is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// A linear model on scattering features: 39,700 parameters.
    Scattering,
    /// The CNN with 21,840 parameters.
    Cnn,
}

impl Model {
    /// Its name in keys and files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Scattering => "scattering",
            Self::Cnn => "cnn",
        }
    }

    /// As captions call it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Scattering => "scattering features and a linear model",
            Self::Cnn => "CNN",
        }
    }

    /// The network, and one record in `divide` of the data as it sees them.
    pub(crate) fn on(self, mut data: Split, divide: usize) -> Result<(Network, Split), Error> {
        let first = |count: usize| (0..count / divide).collect::<Vec<usize>>();
        data.train = data.train.subset(&first(data.train.len()))?;
        data.test = data.test.subset(&first(data.test.len()))?;
        let spec = match self {
            Self::Cnn => NetworkSpec::cnn(),
            Self::Scattering => {
                // As its cells were measured.
                let features = FeatureSpec::scattering_as(Storage::Single);
                data.train = features.apply_to(&data.train, &|_, _| {})?;
                data.test = features.apply_to(&data.test, &|_, _| {})?;
                NetworkSpec::logistic(data.train.input_len(), data.train.classes())
            }
        };
        Ok((spec.build()?, data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use geodp_data::{Dataset, Records, Shape};

    /// Cells do not say how features were kept, so nothing else would notice.
    #[test]
    fn features_are_kept_as_when_the_cells_were_measured() {
        let pixels = (0..2 * 64).map(|at| (at % 97) as f32 / 97.0).collect();
        let records = Records::from_floats(Shape::image(1, 8, 8), pixels, "made").unwrap();
        let data = Dataset::new("d", records, vec![0, 1], vec!["a".into(), "b".into()]).unwrap();
        let split = Split { train: data.clone(), test: data };
        let (_, seen) = Model::Scattering.on(split, 1).unwrap();
        for part in [&seen.train, &seen.test] {
            let made = part.records().preprocessing();
            assert!(made.ends_with("group norm 27, f32"), "{made}");
        }
    }
}
