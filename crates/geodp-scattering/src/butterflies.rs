//! Fourier transforms of two to five values, y_k = Σ_n x_n·exp(−2πi·kn/R), written out.

use crate::lanes::{Complex, Lanes};

/// A transform of `R` values in place.
pub(crate) trait Butterfly<const R: usize> {
    fn apply<V: Lanes>(values: &mut [Complex<V>; R]);
}

pub(crate) struct Two;
pub(crate) struct Three;
pub(crate) struct Four;
pub(crate) struct Five;

impl Butterfly<2> for Two {
    #[inline(always)]
    fn apply<V: Lanes>(values: &mut [Complex<V>; 2]) {
        let [a, b] = *values;
        *values = [a + b, a - b];
    }
}

impl Butterfly<3> for Three {
    #[inline(always)]
    fn apply<V: Lanes>(values: &mut [Complex<V>; 3]) {
        let [a, b, c] = *values;
        let (sum, difference) = (b + c, (b - c).scaled(V::splat(0.866_025_4)));
        let middle = a - sum.scaled(V::splat(0.5));
        *values = [a + sum, middle.add_turned(difference), middle.sub_turned(difference)];
    }
}

impl Butterfly<4> for Four {
    #[inline(always)]
    fn apply<V: Lanes>(values: &mut [Complex<V>; 4]) {
        let [a, b, c, d] = *values;
        let (ac, bd, even, odd) = (a + c, b + d, a - c, b - d);
        *values = [ac + bd, even.add_turned(odd), ac - bd, even.sub_turned(odd)];
    }
}

impl Butterfly<5> for Five {
    #[inline(always)]
    fn apply<V: Lanes>(values: &mut [Complex<V>; 5]) {
        let [a, b, c, d, e] = *values;
        let (cos_72, cos_144) = (V::splat(0.309_017), V::splat(-0.809_017));
        let (sin_72, sin_144) = (V::splat(0.951_056_5), V::splat(0.587_785_25));
        let (be, cd, near, far) = (b + e, c + d, b - e, c - d);
        let first = a + be.scaled(cos_72) + cd.scaled(cos_144);
        let second = a + be.scaled(cos_144) + cd.scaled(cos_72);
        let first_odd = near.scaled(sin_72) + far.scaled(sin_144);
        let second_odd = near.scaled(sin_144) - far.scaled(sin_72);
        *values = [
            a + be + cd,
            first.add_turned(first_odd),
            second.add_turned(second_odd),
            second.sub_turned(second_odd),
            first.sub_turned(first_odd),
        ];
    }
}
