//! How stored bytes become network inputs, and the shape of one input.
//!
//! A pixel p of channel c is read as (p/255 − mean_c)/std_c, evaluated as p·a_c + b_c with
//! a = 1/(255·std) and b = −mean/std rounded once from f64: one multiply and one add a pixel, which
//! vectorises on every CPU and gives the same bits on all of them (no fused operation).
//! The constants are declared by the caller, never estimated from the records: statistics of private
//! data would have to be paid for from the privacy budget.

use serde::{Deserialize, Serialize};

use crate::DataError;

/// Channels, height and width of one input; values are stored channel by channel, row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shape {
    /// Channels of an image, or the number of features of a tabular record.
    pub channels: usize,
    /// Rows of an image; 1 for a tabular record.
    pub height: usize,
    /// Columns of an image; 1 for a tabular record.
    pub width: usize,
}

impl Shape {
    /// An image.
    pub fn image(channels: usize, height: usize, width: usize) -> Self {
        Shape { channels, height, width }
    }

    /// A record of `count` unrelated features.
    pub fn features(count: usize) -> Self {
        Shape { channels: count, height: 1, width: 1 }
    }

    /// Values in one input, or `None` where that overflows.
    pub(crate) fn checked_len(&self) -> Option<usize> {
        self.channels.checked_mul(self.height)?.checked_mul(self.width)
    }
}

/// The public constants that turn a byte into an input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scaling {
    /// p/255, in \[0, 1\]: for logistic regression.
    Unit,
    /// (p/255 − mean)/std, with one pair for all channels or one for each.
    Standard {
        /// Mean of p/255, by channel.
        mean: Vec<f32>,
        /// Standard deviation of p/255, by channel.
        std: Vec<f32>,
    },
}

impl Scaling {
    /// (a, b) of p·a + b, one pair for all channels or one for each.
    pub(crate) fn affine(&self, channels: usize) -> Result<Vec<(f32, f32)>, DataError> {
        let (mean, std) = match self {
            Scaling::Unit => (&[0.0][..], &[1.0][..]),
            Scaling::Standard { mean, std } => (&mean[..], &std[..]),
        };
        if mean.len() != std.len() || (mean.len() != 1 && mean.len() != channels) {
            return Err(DataError::Argument(format!(
                "scaling has {} means and {} standard deviations; inputs of {channels} channels need 1 or {channels} of each",
                mean.len(),
                std.len()
            )));
        }
        mean.iter().zip(std).map(|(&mean, &std)| affine_of(mean, std)).collect()
    }

    /// One line that names the scaling, part of a dataset's fingerprint.
    pub(crate) fn describe(&self) -> String {
        match self {
            Scaling::Unit => "unit".to_owned(),
            Scaling::Standard { mean, std } => format!("standard mean {mean:?} std {std:?}"),
        }
    }
}

fn affine_of(mean: f32, std: f32) -> Result<(f32, f32), DataError> {
    if !mean.is_finite() || !std.is_finite() || std <= 0.0 {
        return Err(DataError::Argument(format!(
            "scaling by mean {mean} and standard deviation {std}: both must be finite, and the second above 0"
        )));
    }
    let std = f64::from(std);
    // `0.0 -` and not unary minus: a mean of 0 must give +0.
    Ok(((1.0 / (255.0 * std)) as f32, (0.0 - f64::from(mean) / std) as f32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_scaling_maps_the_ends_exactly() {
        let [(a, b)] = Scaling::Unit.affine(3).unwrap()[..] else { panic!("one pair") };
        assert_eq!(0.0 * a + b, 0.0);
        assert_eq!(255.0 * a + b, 1.0);
    }

    #[test]
    fn every_byte_is_within_rounding_of_the_formula() {
        let scaling = Scaling::Standard { mean: vec![0.1307], std: vec![0.3081] };
        let [(a, b)] = scaling.affine(1).unwrap()[..] else { panic!("one pair") };
        for pixel in 0..=255u8 {
            let exact = (f64::from(pixel) / 255.0 - f64::from(0.1307f32)) / f64::from(0.3081f32);
            let read = f64::from(f32::from(pixel) * a + b);
            assert!((read - exact).abs() < 4e-7, "{pixel}: {read} against {exact}");
        }
    }

    #[test]
    fn impossible_scalings_are_refused() {
        let two = Scaling::Standard { mean: vec![0.0, 0.0], std: vec![1.0, 1.0] };
        assert!(two.affine(2).is_ok());
        assert!(two.affine(3).is_err());
        for std in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            assert!(Scaling::Standard { mean: vec![0.0], std: vec![std] }.affine(1).is_err());
        }
    }
}
