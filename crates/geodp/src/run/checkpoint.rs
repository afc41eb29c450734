//! The checkpoint: where a run stands, in one file that is either whole or refused.
//!
//! Layout: the magic `geodpck2`, the header's length (u64), a JSON header, the tensors as
//! little-endian f32 one after another, and the SHA-256 of all of it. It holds weights, the
//! optimiser's state and the position; noise and batches are functions of the position and of the
//! run's key, which is kept elsewhere. Everything in it is made of noisy gradients: no clean
//! gradient, no batch, no key.

use super::files;
use crate::Error;
use crate::optimizer::OptimizerScalars;
use crate::select::Selection;
use crate::trainer::TrainerState;
use geodp_mechanism::PolarState;
use geodp_mechanism::perturb::PolarCounts;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::Path;

const MAGIC: &[u8; 8] = b"geodpck2";
const DIGEST_BYTES: usize = 32;

/// Where a run stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Checkpoint {
    pub(crate) position: Position,
    pub(crate) weights: Vec<f32>,
    pub(crate) optimizer_state: Vec<Vec<f32>>,
}

/// What ties a checkpoint to its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// Steps done.
    pub(crate) step: u64,
    /// Which run, as its ledger's header says.
    pub(crate) run: String,
    /// SHA-256 of `run.toml`, so that a changed config is noticed.
    pub(crate) config: String,
    /// Keyed hash of the records.
    pub(crate) data: String,
    /// What decides the bits of a step: program, arithmetic, processor.
    pub(crate) machine: String,
    /// SHA-256 of the noise's key: another key would release steps again with other noise.
    pub(crate) noise: String,
    /// Where optimiser and strategies stand.
    #[serde(default)]
    pub(crate) strategy: Strategy,
    /// Records in the ledger when this was written, and the hash of the last of them.
    pub(crate) ledger_records: u64,
    /// See `ledger_records`.
    pub(crate) ledger_head: String,
}

/// The numbers of optimiser, SUR, IS, adaptive clipping and certified GeoDP: made of releases, like the weights. Fractions are kept as
/// their bits, so that they come back exactly.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Strategy {
    optimizer_steps: u64,
    optimizer_noise_bits: u64,
    norm_total_bits: Option<u64>,
    clip_norm_bits: Option<u64>,
    selection: Selection,
    squared_norm_bits: Option<u64>,
    squared_norm_variance_bits: u64,
    polar: PolarCounts,
    polar_ratio_total_bits: u64,
}

impl Position {
    /// This position moved to where a trainer stands.
    pub(crate) fn moved_to(&self, at: TrainerState) -> Self {
        let strategy = Strategy {
            optimizer_steps: at.optimizer.steps,
            optimizer_noise_bits: at.optimizer.noise_variance.to_bits(),
            norm_total_bits: at.norm_total.map(f64::to_bits),
            clip_norm_bits: at.clip_norm.map(f64::to_bits),
            selection: at.selection,
            squared_norm_bits: at.history.squared_norm.map(f64::to_bits),
            squared_norm_variance_bits: at.history.variance.to_bits(),
            polar: at.history.counts,
            polar_ratio_total_bits: at.history.ratio_total.to_bits(),
        };
        Self { step: at.step, strategy, ..self.clone() }
    }

    /// Where a trainer is to stand.
    pub(crate) fn state(&self) -> TrainerState {
        let strategy = &self.strategy;
        TrainerState {
            step: self.step,
            selection: strategy.selection,
            norm_total: strategy.norm_total_bits.map(f64::from_bits),
            clip_norm: strategy.clip_norm_bits.map(f64::from_bits),
            history: PolarState {
                squared_norm: strategy.squared_norm_bits.map(f64::from_bits),
                variance: f64::from_bits(strategy.squared_norm_variance_bits),
                counts: strategy.polar,
                ratio_total: f64::from_bits(strategy.polar_ratio_total_bits),
            },
            optimizer: OptimizerScalars {
                steps: strategy.optimizer_steps,
                noise_variance: f64::from_bits(strategy.optimizer_noise_bits),
            },
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Header {
    #[serde(flatten)]
    position: Position,
    dim: usize,
    optimizer_vectors: usize,
}

impl Checkpoint {
    /// Where it stands, and the weights that are released there: where they are averaged, the average,
    /// which stands last among the optimiser's states.
    pub(crate) fn released(mut self, averaged: bool) -> (Position, Vec<f32>) {
        let average = if averaged { self.optimizer_state.pop() } else { None };
        (self.position, average.unwrap_or(self.weights))
    }

    /// Writes atomically.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Error> {
        files::write_secret(path, &self.to_bytes())
    }

    /// Reads and verifies every byte.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let bytes = files::read(path)?;
        Self::from_bytes(&bytes)
            .map_err(|reason| Error::Damaged { path: path.to_owned(), reason: reason.to_owned() })
    }

    fn to_bytes(&self) -> Vec<u8> {
        let header = Header {
            position: self.position.clone(),
            dim: self.weights.len(),
            optimizer_vectors: self.optimizer_state.len(),
        };
        let header = serde_json::to_vec(&header).unwrap_or_default();
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&(header.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&header);
        for tensor in std::iter::once(&self.weights).chain(&self.optimizer_state) {
            bytes.extend(tensor.iter().flat_map(|x| x.to_le_bytes()));
        }
        let digest = Sha256::digest(&bytes);
        bytes.extend_from_slice(&digest);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, &'static str> {
        if bytes.len() < MAGIC.len() + 8 + DIGEST_BYTES {
            return Err("it is too short to be a checkpoint");
        }
        let (body, digest) = bytes.split_at(bytes.len() - DIGEST_BYTES);
        if !body.starts_with(MAGIC) {
            return Err("it is not a geodp checkpoint");
        }
        if Sha256::digest(body).as_slice() != digest {
            return Err("its checksum does not fit: it was truncated or altered");
        }
        let mut length = [0; 8];
        length.copy_from_slice(&body[8..16]);
        let end = usize::try_from(u64::from_le_bytes(length)).ok().and_then(|n| n.checked_add(16));
        let header = end.and_then(|end| body.get(16..end)).ok_or("its header is cut off")?;
        let Header { position, dim, optimizer_vectors } =
            serde_json::from_slice(header).map_err(|_| "its header cannot be read")?;
        let (values, rest) = body[16 + header.len()..].as_chunks::<4>();
        let expected = optimizer_vectors.checked_add(1).and_then(|n| n.checked_mul(dim));
        if !rest.is_empty() || expected != Some(values.len()) {
            return Err("its tensors do not fit its header");
        }
        let mut tensors = values
            .chunks(dim.max(1))
            .map(|tensor| tensor.iter().map(|b| f32::from_le_bytes(*b)).collect::<Vec<f32>>());
        let weights = tensors.next().unwrap_or_default();
        Ok(Self { position, weights, optimizer_state: tensors.collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Checkpoint {
        Checkpoint {
            position: Position {
                step: 12,
                run: "r".into(),
                config: "c".into(),
                data: "d".into(),
                machine: "m".into(),
                noise: "n".into(),
                strategy: Strategy {
                    optimizer_steps: 9,
                    optimizer_noise_bits: 0.1_f64.to_bits(),
                    norm_total_bits: Some(3.7_f64.to_bits()),
                    clip_norm_bits: Some(0.2_f64.to_bits()),
                    selection: Selection { accepted: 9, rejected: 3 },
                    squared_norm_bits: Some(0.3_f64.to_bits()),
                    squared_norm_variance_bits: 0.7_f64.to_bits(),
                    polar: PolarCounts { polar: 5, isotropic: 6, directionless: 1 },
                    polar_ratio_total_bits: 5.5_f64.to_bits(),
                },
                ledger_records: 3,
                ledger_head: "h".into(),
            },
            weights: vec![1.5, -0.0, f32::MIN_POSITIVE],
            optimizer_state: vec![vec![0.25, 3.0, -7.0]],
        }
    }

    #[test]
    fn comes_back_bit_for_bit() {
        let bytes = example().to_bytes();
        assert_eq!(Checkpoint::from_bytes(&bytes).unwrap(), example());
        let plain = Checkpoint { optimizer_state: vec![], ..example() };
        assert_eq!(Checkpoint::from_bytes(&plain.to_bytes()).unwrap(), plain);
    }

    #[test]
    fn a_trainers_position_comes_back() {
        let at = TrainerState {
            step: 7,
            selection: Selection { accepted: 3, rejected: 4 },
            norm_total: Some(1.0 / 3.0),
            clip_norm: Some(1.0 / 9.0),
            history: PolarState {
                squared_norm: Some(-1.0 / 7.0),
                variance: 1e-9 / 3.0,
                counts: PolarCounts { polar: 4, isotropic: 2, directionless: 1 },
                ratio_total: 13.0 / 3.0,
            },
            optimizer: OptimizerScalars { steps: 3, noise_variance: 1e-17 / 3.0 },
        };
        let checkpoint = Checkpoint { position: example().position.moved_to(at), ..example() };
        let read = Checkpoint::from_bytes(&checkpoint.to_bytes()).unwrap();
        assert_eq!(read.position.state(), at);
        assert_eq!(read.position.ledger_head, "h");
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_refused() {
        let bytes = example().to_bytes();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                assert!(Checkpoint::from_bytes(&flipped).is_err(), "byte {at}, bit {bit}");
            }
            assert!(Checkpoint::from_bytes(&bytes[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn nothing_half_written_stays_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint");
        example().write(&path).unwrap();
        assert_eq!(Checkpoint::read(&path).unwrap(), example());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let missing = folder.path().join("no/such/checkpoint");
        assert!(matches!(example().write(&missing), Err(Error::Write { .. })));
    }
}
