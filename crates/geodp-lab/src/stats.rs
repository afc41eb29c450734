//! Mean, spread and interval of repeated measurements.

/// Mean of the values; not a number of none.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sample standard deviation; 0 of fewer than two values.
pub fn std_dev(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// Half the width of the 95 % interval of the mean of many values: 1.96·s/√n.
pub fn half_width(values: &[f64]) -> f64 {
    1.96 * std_dev(values) / (values.len() as f64).sqrt()
}

/// The middle value (the upper of two); not a number of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textbook_values() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&values), 5.0);
        assert!((std_dev(&values) - (32.0_f64 / 7.0).sqrt()).abs() < 1e-15);
        assert!((half_width(&values) - 1.96 * (4.0_f64 / 7.0).sqrt()).abs() < 1e-15);
        assert_eq!(median(&values), 5.0);
        assert_eq!(std_dev(&[3.0]), 0.0);
        assert!(mean(&[]).is_nan() && median(&[]).is_nan());
    }
}
