//! Data sets and recipes. MNIST and Fashion-MNIST are trained exactly as `geodp train` does with every
//! option left at its default; CIFAR-10 has a convolutional head of its own.

use crate::Error;
use crate::options::{Options, Size};
use geodp::config::{ConfigFile, DataConfig, ModelConfig, PairFiles, RunConfig, TestIs};
use geodp::optimizer::OptimizerKind;
use geodp::params::TrainParams;
use geodp_data::{FeatureSpec, Storage, ViewSpec};
use geodp_nn::NetworkSpec;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Set {
    /// Handwritten digits.
    Mnist,
    /// Photographs of clothes.
    FashionMnist,
    /// Photographs of animals and vehicles.
    Cifar10,
}

impl Set {
    /// All of them.
    pub const ALL: [Set; 3] = [Set::Mnist, Set::FashionMnist, Set::Cifar10];

    /// Its name in keys and files.
    pub fn name(self) -> &'static str {
        match self {
            Set::Mnist => "mnist",
            Set::FashionMnist => "fashion-mnist",
            Set::Cifar10 => "cifar10",
        }
    }

    /// Its name as people write it.
    pub fn title(self) -> &'static str {
        match self {
            Set::Mnist => "MNIST",
            Set::FashionMnist => "Fashion-MNIST",
            Set::Cifar10 => "CIFAR-10",
        }
    }

    /// The completed config of a training at this ε.
    pub(super) fn config(self, epsilon: f64, options: &Options) -> Result<RunConfig, Error> {
        let data = match (self, options.size) {
            // Tests need no files: few digits stand for every set.
            (_, Size::Tiny) => {
                DataConfig::Mnist { labels: Some(vec![0, 1]), unit_scaling: false, holdout: None }
            }
            (Set::Mnist, _) => DataConfig::default(),
            (Set::FashionMnist, _) => {
                let folder = options.data_dir.join("fashion-mnist");
                DataConfig::Arrays(PairFiles::in_folder(&folder, 10, Some(TestIs::Public))?)
            }
            (Set::Cifar10, _) => {
                DataConfig::Cifar10 { folder: Some(options.data_dir.clone()), holdout: None }
            }
        };
        let mut config =
            RunConfig::from(ConfigFile { data: Some(data), ..self.recipe_file(options) });
        config.privacy.epsilon = Some(epsilon);
        config.privacy.delta = Some(1e-5);
        config.complete();
        Ok(config)
    }

    fn recipe_file(self, options: &Options) -> ConfigFile {
        let mut file = ConfigFile::default();
        if options.size == Size::Tiny {
            file.model = Some(ModelConfig::Logistic);
            file.train = TrainParams { batch: Some(256), steps: Some(2), ..file.train };
        } else if self == Set::Cifar10 {
            file.features = Some(FeatureSpec::Scattering { groups: 27, storage: Storage::Half });
            file.views = Some(ViewSpec { flip: true, shift: 0, each_step: Some(1) });
            file.model = Some(ModelConfig::Network(NetworkSpec::scattering_head()));
            file.train = TrainParams {
                batch: Some(4096),
                steps: Some(440),
                learning_rate: Some(4.0),
                optimizer: Some(OptimizerKind::Momentum { momentum: 0.9 }),
                average: Some(0.9999),
                ..file.train
            };
        }
        file
    }

    /// What a cell is known by: everything of the config but where the files are.
    pub(super) fn recipe(self, epsilon: f64, options: &Options) -> Value {
        let mut file = self.recipe_file(options);
        let images = self != Set::Cifar10 && options.size != Size::Tiny;
        let features = if images { Some(FeatureSpec::scattering()) } else { file.features.take() };
        let model = file.model.take().unwrap_or(ModelConfig::Logistic);
        // Completed on data that needs no file: defaults depend on the model and ε alone.
        let mut config = RunConfig::from(ConfigFile { model: Some(model), features, ..file });
        config.privacy.epsilon = Some(epsilon);
        config.privacy.delta = Some(1e-5);
        config.complete();
        json!({
            "features": config.features, "views": config.views, "model": config.model,
            "privacy": config.privacy, "train": config.train,
        })
    }
}
