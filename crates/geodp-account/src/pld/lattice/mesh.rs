//! Which points of the lattice {i·h} carry masses, and how wide the cells between them are.
//!
//! At small rates and little noise nearly all mass lies within a few h and losses reach up to 10⁵ h: there fewer
//! points are taken the further from the peak, cells of a constant share of their distance, and 300 points do
//! for 100,000.

use std::sync::Arc;

/// Which points of the lattice a release's masses may lie on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mesh {
    /// h.
    pub(crate) step: f64,
    /// Points closer to the peak than twice this are all taken, of those further out as many between
    /// any distance and its double. `None`: all are.
    pub(crate) core: Option<i64>,
}

impl Mesh {
    /// All points.
    #[cfg(test)]
    pub(crate) fn even(step: f64) -> Self {
        Self { step, core: None }
    }

    /// The points taken from one at or below `first` to one at or above `last`; 0 is the peak.
    pub(super) fn places(&self, first: i64, last: i64) -> Arc<[i64]> {
        let Some(core) = self.core else { return (first..=last).collect() };
        // The distances 2ᵏ·core … 2ᵏ⁺¹·core are multiples of 2ᵏ, and so are their bounds.
        let outwards = |end: i64| {
            let next = move |place: &i64| {
                let width = 1i64 << (place / core).max(1).ilog2();
                (*place < end).then_some(place + width)
            };
            std::iter::successors(Some(0), next)
        };
        let mut places: Vec<i64> = outwards(-first).skip(1).map(|distance| -distance).collect();
        places.reverse();
        places.extend(outwards(last));
        places.into()
    }
}

/// What a cell's width w is to a chord in e^ε.
#[derive(Clone, Copy)]
pub(super) struct Span {
    /// e^{−w}
    pub(super) fall: f64,
    /// 1 − e^{−w}
    pub(super) rise: f64,
}

/// The spans of the cells between places; neighbours mostly have the same.
pub(super) fn spans(places: &[i64], h: f64) -> Vec<Span> {
    let of = |width: i64| {
        let width = width as f64 * h;
        Span { fall: (-width).exp(), rise: -(-width).exp_m1() }
    };
    let mut last = (1, of(1));
    let widths = places.windows(2).map(|ends| ends[1] - ends[0]);
    let spans = widths.map(|width| {
        if width != last.0 {
            last = (width, of(width));
        }
        last.1
    });
    spans.collect()
}
