//! Normalisation of one record's features, group by group.
//!
//! v ← (v − mean)/√(variance + 1e-5) over each group of neighbouring channels, as
//! [torch's GroupNorm](https://docs.pytorch.org/docs/stable/generated/torch.nn.GroupNorm.html) without
//! its affine map. Mean and variance are of the one record, so it costs no privacy; the statistics of
//! a batch would. Sums are in double precision and in order: the same bits on every machine.

use crate::ScatteringError;

/// What torch adds to the variance.
const EPSILON: f64 = 1e-5;

/// Normalises features of `channels` planes of equal size in `groups` groups of channels.
///
/// # Errors
/// If the groups do not divide the channels.
///
/// # Panics
/// If `features` is not a whole number of channels.
pub fn group_norm(
    features: &mut [f32],
    channels: usize,
    groups: usize,
) -> Result<(), ScatteringError> {
    check_groups(channels, groups)?;
    assert!(features.len().is_multiple_of(channels), "features are whole channels");
    let size = features.len() / groups;
    if size == 0 {
        return Ok(());
    }
    for group in features.chunks_exact_mut(size) {
        let count = size as f64;
        let mean = group.iter().map(|&v| f64::from(v)).sum::<f64>() / count;
        let square = |&v: &f32| (f64::from(v) - mean) * (f64::from(v) - mean);
        let variance = group.iter().map(square).sum::<f64>() / count;
        let factor = 1.0 / (variance + EPSILON).sqrt();
        for value in group {
            *value = ((f64::from(*value) - mean) * factor) as f32;
        }
    }
    Ok(())
}

/// Refuses groups that do not divide the channels, and names the nearest number that does.
///
/// # Errors
/// [`ScatteringError::Groups`].
pub fn check_groups(channels: usize, groups: usize) -> Result<(), ScatteringError> {
    if groups > 0 && channels.is_multiple_of(groups) {
        return Ok(());
    }
    let divisors = (1..=channels.max(1)).filter(|divisor| channels.is_multiple_of(*divisor));
    let nearest = divisors.min_by_key(|divisor| divisor.abs_diff(groups)).unwrap_or(1);
    Err(ScatteringError::Groups { groups, channels, nearest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_has_mean_zero_and_variance_one() {
        let mut features: Vec<f32> = (0..6 * 4).map(|v| (v * v % 17) as f32).collect();
        let untouched = features.clone();
        group_norm(&mut features, 6, 3).unwrap();
        for (group, before) in features.chunks_exact(8).zip(untouched.chunks_exact(8)) {
            let mean = group.iter().sum::<f32>() / 8.0;
            let variance = group.iter().map(|v| v * v).sum::<f32>() / 8.0;
            assert!(mean.abs() < 1e-6 && (variance - 1.0).abs() < 1e-5, "{mean} {variance}");
            assert!(group[0] < group[1] || before[0] >= before[1]);
        }
    }

    #[test]
    fn a_flat_group_becomes_zero() {
        let mut features = [3.5; 8];
        group_norm(&mut features, 2, 1).unwrap();
        assert_eq!(features, [0.0; 8]);
    }

    #[test]
    fn groups_that_do_not_divide_are_refused_with_the_nearest() {
        for (groups, nearest) in [(0, 1), (28, 27), (80, 81), (1000, 81)] {
            let error = check_groups(81, groups).unwrap_err();
            assert!(matches!(error, ScatteringError::Groups { nearest: n, .. } if n == nearest));
        }
        for groups in [1, 3, 9, 27, 81] {
            check_groups(81, groups).unwrap();
        }
    }
}
