//! Suffix sums of squares of one chunk, as eight independent chains.
//!
//! A running sum waits for its last result: one chain uses a fraction of the machine. The chunk is
//! cut into [`CHAINS`] equal segments that run side by side, each from 0; the caller adds the
//! segments' offsets. The cut depends on the length only, so the order of operations, and with it
//! every bit, is fixed.

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
    }
}
