//! Suffix sums of squares and prefix products of one chunk, as eight independent chains.
//!
//! A running sum or product waits for its last result: one chain uses a fraction of the machine.
//! The chunk is cut into [`CHAINS`] equal segments that run side by side, each from a neutral
//! start; the caller adds or multiplies the segments' offsets. The cut depends on the length
//! only, so the order of operations, and with it every bit, is fixed.

/// Segments scanned side by side.
pub(crate) const CHAINS: usize = 8;

/// For each segment, `sums[i]` = Σ of `values`² from i to the segment's end; returns the totals.
/// `values.len()` is a multiple of [`CHAINS`].
#[inline(always)]
pub(crate) fn suffix_squares(values: &[f64], sums: &mut [f64]) -> [f64; CHAINS] {
    let segment = values.len() / CHAINS;
    let (values, sums) = (&values[..segment * CHAINS], &mut sums[..segment * CHAINS]);
    let mut running = [0.0; CHAINS];
    for i in (0..segment).rev() {
        for (chain, sum) in running.iter_mut().enumerate() {
            let at = chain * segment + i;
            *sum = f64::mul_add(values[at], values[at], *sum);
            sums[at] = *sum;
        }
    }
    running
}

/// For each segment, multiplies `values[i]` by the product of the segment's `factors` before i;
/// returns the products of whole segments.
#[inline(always)]
pub(crate) fn prefix_products(factors: &[f64], values: &mut [f64]) -> [f64; CHAINS] {
    let segment = factors.len() / CHAINS;
    let (factors, values) = (&factors[..segment * CHAINS], &mut values[..segment * CHAINS]);
    let mut running = [1.0; CHAINS];
    for i in 0..segment {
        for (chain, product) in running.iter_mut().enumerate() {
            let at = chain * segment + i;
            values[at] *= *product;
            *product *= factors[at];
        }
    }
    running
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_scan_alone() {
        let values: Vec<f64> = (1..=24).map(f64::from).collect();
        let mut sums = vec![0.0; 24];
        let totals = suffix_squares(&values, &mut sums);
        assert_eq!(&sums[..3], &[14.0, 13.0, 9.0]);
        assert_eq!(totals[7], 22.0f64.powi(2) + 23.0f64.powi(2) + 24.0f64.powi(2));

        let mut products = vec![1.0; 24];
        let totals = prefix_products(&values, &mut products);
        assert_eq!(&products[3..6], &[1.0, 4.0, 20.0]);
        assert_eq!(totals[1], 120.0);
    }
}
