//! Counts over equal bins, linear or logarithmic.
//!
//! Bins are half open, [eᵢ, eᵢ₊₁), and the last one closed. Values that have no bin (not finite, not
//! positive on a log scale, outside given edges) are counted apart and named in the figure.

use super::ticks::LARGEST;

/// A histogram.
///
/// ```
/// use geodp_report::Histogram;
/// let h = Histogram::linear([0.0, 0.1, 0.9, 1.0, f64::NAN], 2);
/// assert_eq!(h.counts(), [2, 2]);
/// assert_eq!(h.left_out(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Histogram {
    edges: Vec<f64>,
    counts: Vec<u64>,
    left_out: u64,
}

impl Histogram {
    /// `bins` equal bins over the range of the finite values.
    pub fn linear(values: impl IntoIterator<Item = f64>, bins: usize) -> Histogram {
        Histogram::build(values, bins, false)
    }

    /// `bins` bins of equal ratio over the range of the positive finite values.
    pub fn log(values: impl IntoIterator<Item = f64>, bins: usize) -> Histogram {
        Histogram::build(values, bins, true)
    }

    /// Counts over given ascending edges; for histograms that share their bins. Edges that are not
    /// finite or not ascending are dropped.
    pub fn over(edges: &[f64], values: impl IntoIterator<Item = f64>) -> Histogram {
        let mut kept: Vec<f64> = Vec::new();
        for edge in edges.iter().copied().filter(|e| e.abs() <= LARGEST) {
            if kept.last().is_none_or(|last| edge > *last) {
                kept.push(edge);
            }
        }
        let bins = kept.len().saturating_sub(1);
        let mut histogram = Histogram { edges: kept, counts: vec![0; bins], left_out: 0 };
        for value in values {
            histogram.add(value);
        }
        histogram
    }

    /// The edges of the bins: one more than the bins, or none if there was no data.
    pub fn edges(&self) -> &[f64] {
        &self.edges
    }

    /// The number of values in each bin.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// How many values had no bin.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    pub(crate) fn bins(&self) -> impl Iterator<Item = (f64, f64, u64)> {
        self.edges.windows(2).zip(&self.counts).map(|(edge, count)| (edge[0], edge[1], *count))
    }

    fn build(values: impl IntoIterator<Item = f64>, bins: usize, log: bool) -> Histogram {
        let values: Vec<f64> = values.into_iter().collect();
        let fits = |v: &&f64| v.abs() <= LARGEST && (!log || **v >= LARGEST.recip());
        let range = values.iter().filter(fits).fold(None, |range: Option<(f64, f64)>, v| {
            Some(range.map_or((*v, *v), |(lo, hi)| (lo.min(*v), hi.max(*v))))
        });
        let edges = range.map_or(Vec::new(), |range| equal_edges(range, bins.clamp(1, 1000), log));
        Histogram::over(&edges, values)
    }

    fn add(&mut self, value: f64) {
        let inside = self.counts.len();
        // NaN is at or above no edge, so it gets no bin.
        let bin = self.edges.partition_point(|edge| *edge <= value);
        // The last edge belongs to the last bin.
        let at_end = self.edges.last() == Some(&value);
        match bin.checked_sub(1 + usize::from(at_end)) {
            Some(bin) if bin < inside => self.counts[bin] += 1,
            _ => self.left_out += 1,
        }
    }
}

fn equal_edges((lo, hi): (f64, f64), bins: usize, log: bool) -> Vec<f64> {
    let (lo, hi) = match (hi - lo > 1e-9 * lo.abs().max(hi.abs()), log) {
        (true, _) => (lo, hi),
        // One value, or nearly: bins around it.
        (false, true) => (lo / 2.0, hi * 2.0),
        (false, false) if hi == 0.0 => (-0.5, 0.5),
        (false, false) => (lo - 0.1 * hi.abs(), hi + 0.1 * hi.abs()),
    };
    let edge = |i: usize| match i {
        0 => lo,
        i if i == bins => hi,
        i => {
            let share = i as f64 / bins as f64;
            if log { lo * (share * (hi / lo).ln()).exp() } else { lo + share * (hi - lo) }
        }
    };
    (0..=bins).map(edge).collect()
}

#[cfg(test)]
mod tests {
    use super::Histogram;
    use proptest::prelude::*;

    #[test]
    fn values_on_edges_fall_right_and_the_last_edge_counts() {
        let h = Histogram::over(&[0.0, 1.0, 2.0], [0.0, 1.0, 1.5, 2.0, 2.1, -0.1]);
        assert_eq!(h.counts(), [1, 3]);
        assert_eq!(h.left_out(), 2);
    }

    #[test]
    fn nothing_and_one_value_are_fine() {
        assert!(Histogram::linear([], 10).counts().is_empty());
        assert_eq!(Histogram::log([0.0, -1.0, f64::INFINITY], 10).left_out(), 3);
        assert_eq!(Histogram::linear([3.0], 3).counts(), [0, 1, 0]);
        assert_eq!(Histogram::log([0.0, 0.5], 2).counts().iter().sum::<u64>(), 1);
    }

    proptest! {
        #[test]
        fn no_value_is_lost(values in prop::collection::vec(any::<f64>(), 0..50),
                            bins in 0_usize..30, log: bool) {
            let n = values.len() as u64;
            let h = if log { Histogram::log(values, bins) } else { Histogram::linear(values, bins) };
            prop_assert_eq!(h.counts().iter().sum::<u64>() + h.left_out(), n);
        }
    }
}
