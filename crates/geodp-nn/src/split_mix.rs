//! A small repeatable generator for choices that are not private: first weights, which records to hold
//! back, in which order to visit samples.
//!
//! SplitMix64 ([Steele, Lea, Flood 2014](https://doi.org/10.1145/2714064.2660195)): one addition and
//! a mix per number, fixed for ever by its test, so that a seed means the same records in every
//! release. Never used for noise or for private sampling.

/// The generator. Never for noise or for private sampling.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Starts at a seed.
    pub fn new(seed: u64) -> Self {
        SplitMix64(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// In [−1, 1).
    pub(crate) fn signed_unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (2.0 / (1u64 << 53) as f64) - 1.0
    }

    /// A number below `bound`, each equally likely
    /// ([Lemire 2019](https://doi.org/10.1145/3230636): multiply, reject the few that would bias).
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = bound.max(1) as u64;
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as usize;
            }
        }
    }
}

/// The numbers 0 … count − 1 in an order that the seed decides (Fisher–Yates).
pub fn permutation(count: usize, seed: u64) -> Vec<usize> {
    let mut generator = SplitMix64::new(seed);
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, generator.below(last + 1));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_published_generator() {
        // First outputs for seed 1234567 of the reference C program (prng.di.unimi.it/splitmix64.c).
        let mut generator = SplitMix64::new(1_234_567);
        let expected = [6457827717110365317, 3203168211198807973, 9817491932198370423];
        assert_eq!([0; 3].map(|_| generator.next_u64()), expected);
    }

    #[test]
    fn below_is_even_over_a_bound_that_is_not_a_power_of_two() {
        // 60,000 draws over 6 values: each count is within 6 standard deviations (√(60000·5/36) = 91)
        // of 10,000; false alarm below 1e-8, and the seed is fixed.
        let mut generator = SplitMix64::new(1);
        let mut counts = [0i32; 6];
        (0..60_000).for_each(|_| counts[generator.below(6)] += 1);
        assert!(counts.iter().all(|count| (count - 10_000).abs() < 550), "{counts:?}");
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn below_is_even_over_a_vast_bound() {
        // Without rejection every third value below 3·2⁶² would come twice as often as the others.
        // 6,000 draws: 2,000 ± 36.5; 220 is 6 standard deviations, false alarm below 1e-8.
        let mut generator = SplitMix64::new(2);
        let bound = 3 << 62;
        let thirds = (0..6_000).filter(|_| generator.below(bound).is_multiple_of(3)).count();
        assert!(thirds.abs_diff(2_000) < 220, "{thirds}");
    }

    #[test]
    fn a_permutation_holds_every_number_once() {
        for count in [0, 1, 2, 1000] {
            let mut order = permutation(count, 7);
            assert_eq!(order, permutation(count, 7));
            order.sort_unstable();
            assert!(order.into_iter().eq(0..count));
        }
        assert_ne!(permutation(100, 1), permutation(100, 2));
    }
}
