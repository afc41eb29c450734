//! Exact sums of linear first layers on inputs that are all stored as bytes: those of the records one by one, no
//! longer than the bound, near the real ones, and the same bits everywhere.

use crate::common;

use common::Random;
use geodp_nn::{Grid, InstructionSet, LayerSpec, NetworkSpec, Samples, StoredInput};

const FULL: i128 = 1 << Grid::BITS;

/// Images of bytes with one scaling, which they tell of if asked.
struct Images {
    bytes: Vec<u8>,
    len: usize,
    affine: (f32, f32),
    /// What records are said to be scaled by one by one.
    stored: (f32, f32),
    classes: u32,
    tells: bool,
}

impl Samples for Images {
    fn len(&self) -> usize {
        self.bytes.len() / self.len
    }
    fn input_len(&self) -> usize {
        self.len
    }
    fn read_input(&self, index: usize, out: &mut [f32]) {
        let (a, b) = self.affine;
        for (out, byte) in out.iter_mut().zip(&self.bytes[index * self.len..]) {
            *out = f32::from(*byte) * a + b;
        }
    }
    fn stored_input(&self, index: usize) -> Option<StoredInput<'_>> {
        Some(StoredInput::Bytes(
            &self.bytes[index * self.len..][..self.len],
            std::slice::from_ref(&self.stored),
        ))
    }
    fn byte_scaling(&self) -> Option<(f32, f32)> {
        self.tells.then_some(self.affine)
    }
    fn label(&self, index: usize) -> u32 {
        (index as u32).wrapping_mul(2_654_435_761) % self.classes
    }
}

/// Mostly dark ones, one black, one white.
fn images(spec: &NetworkSpec, count: usize, affine: (f32, f32)) -> Images {
    let network = spec.build().unwrap();
    let (len, mut random) = (network.input_len(), Random(11));
    let mut bytes: Vec<u8> =
        (0..count * len).map(|_| (random.unit().powi(3) * 256.0) as u8).collect();
    bytes[..len].fill(0);
    bytes[len..2 * len].fill(255);
    Images { bytes, len, affine, stored: affine, classes: network.classes() as u32, tells: true }
}

fn specs() -> Vec<NetworkSpec> {
    vec![
        NetworkSpec::logistic(784, 2),
        NetworkSpec::mlp(71, &[2], 3),
        NetworkSpec::logistic(1_030, 2),
        NetworkSpec::mlp(100, &[1, 4], 3),
    ]
}

const AFFINES: [(f32, f32); 4] =
    [(1.0 / 255.0, 0.0), (1.0 / 255.0 / 0.3081, -0.1307 / 0.3081), (-0.02, 3.0), (1e6, -1e9)];

type Rule = dyn Fn(usize, f64) -> f64 + Sync;

fn exact(
    (spec, isa): (&NetworkSpec, Option<InstructionSet>),
    data: &Images,
    batch: &[u32],
    rule: &Rule,
    bound: f64,
) -> (Vec<i64>, Vec<f32>, Vec<f32>) {
    let network = isa.map_or_else(|| spec.build(), |isa| spec.build_for(isa)).unwrap();
    let (weights, mut sum) = (network.init(3), vec![i64::MIN; network.dim()]);
    let grid = Grid::new(bound).unwrap();
    let outcome = network.exact_sum(&weights, data, batch, rule, grid, &mut sum).unwrap();
    (sum, outcome.norms, outcome.losses)
}

fn flat(_: usize, norm: f64) -> f64 {
    (0.3 / norm).min(1.0)
}

/// Whether anything of the first layer's first output moves.
fn moves_first(spec: &NetworkSpec, sum: &[i64]) -> bool {
    sum[..spec.build().unwrap().input_len()].iter().any(|&n| n != 0)
}

#[test]
fn sums_are_those_of_the_records_one_by_one_on_every_instruction_set() {
    for spec in &specs() {
        let mut moved = 0;
        for affine in AFFINES {
            let data = images(spec, 40, affine);
            let alone: Vec<_> =
                (0..40).map(|i| exact((spec, None), &data, &[i], &flat, 0.3)).collect();
            moved += alone.iter().filter(|(sum, ..)| moves_first(spec, sum)).count();
            for len in [1usize, 7, 9, 131] {
                let batch: Vec<u32> = (0..len as u32).map(|i| i * 7 % 40).collect();
                let one = |i: &u32| &alone[*i as usize];
                for isa in InstructionSet::available() {
                    let (sum, norms, losses) = exact((spec, Some(isa)), &data, &batch, &flat, 0.3);
                    let expected = |at: usize| batch.iter().map(|i| one(i).0[at]).sum::<i64>();
                    assert_eq!(sum, (0..sum.len()).map(expected).collect::<Vec<_>>(), "{isa:?}");
                    assert_eq!(norms, batch.iter().map(|i| one(i).1[0]).collect::<Vec<_>>());
                    assert_eq!(losses, batch.iter().map(|i| one(i).2[0]).collect::<Vec<_>>());
                }
            }
        }
        assert!(moved > 40, "{moved} records move the first layer: this shows little");
    }
}

/// Σ over any partition, in any order, on any number of threads; and of units of one row.
#[test]
fn any_partition_and_units_of_one_row_give_the_same_integers() {
    let spec = NetworkSpec::logistic(784, 2);
    let data = images(&spec, 300, AFFINES[1]);
    let batch: Vec<u32> = (0..300).collect();
    let (expected, ..) = exact((&spec, None), &data, &batch, &flat, 0.3);
    for threads in [1, 2, 3, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        for cut in [0, 1, 63, 64, 129, 300] {
            let order: Vec<u32> = batch.iter().rev().map(|i| i * 7 % 300).collect();
            let (first, second) = order.split_at(cut);
            let run =
                |batch: &[u32]| pool.install(|| exact((&spec, None), &data, batch, &flat, 0.3)).0;
            let sum: Vec<i64> = run(first).iter().zip(run(second)).map(|(a, b)| a + b).collect();
            assert_eq!(sum, expected, "{threads} threads, {cut} first");
        }
    }
    let units: Vec<&[u32]> = batch.chunks(1).collect();
    let network = spec.build().unwrap();
    let (mut sum, grid) = (vec![0; network.dim()], Grid::new(0.3).unwrap());
    network.exact_unit_sum(&network.init(3), &data, &units, &flat, grid, &mut sum).unwrap();
    assert_eq!(sum, expected);
}

#[test]
fn what_is_not_a_number_contributes_exactly_nothing() {
    for spec in specs() {
        let (network, data) = (spec.build().unwrap(), images(&spec, 20, AFFINES[1]));
        let (batch, grid) = ((0..20).collect::<Vec<u32>>(), Grid::new(0.3).unwrap());
        let mut sum = vec![1; network.dim()];
        for weight in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let rule = |_: usize, _: f64| weight;
            network.exact_sum(&network.init(3), &data, &batch, &rule, grid, &mut sum).unwrap();
            assert!(sum.iter().all(|&n| n == 0), "{weight}");
        }
        for broken in [f32::NAN, f32::INFINITY] {
            let mut weights = network.init(3);
            weights[5] = broken;
            let asked = |_: usize, norm: f64| {
                assert!(norm.is_finite());
                0.3 / norm
            };
            let outcome =
                network.exact_sum(&weights, &data, &batch, &asked, grid, &mut sum).unwrap();
            let whole = outcome.norms.iter().filter(|norm| norm.is_finite()).count();
            assert!(whole > 0 || sum.iter().all(|&n| n == 0), "{broken}: {whole}");
            assert!(outcome.norms.iter().any(|norm| !norm.is_finite()) || broken.is_infinite());
        }
    }
}

/// The longest that rounding can make a record: without a bias, all of its entries are rounded up by a half, and
/// what is truncated of z is next to nothing.
#[test]
fn rounding_up_every_entry_stays_within_the_bound() {
    let mut spec = NetworkSpec::logistic(16_384, 2);
    let LayerSpec::Linear(linear) = &mut spec.layers[0] else { panic!("one linear layer") };
    linear.bias = false;
    let mut data = images(&spec, 2, (1.0, 1.0 / 16_384.0));
    let network = spec.build().unwrap();
    let (weights, mut sum) = (vec![0.0; 16_384], vec![0; 16_384]);
    // z = 40,960 makes z·r = 2.5. Bytes whose Σ(p + r)² is as little as possible below that of this z: with the room
    // for rounding that there is, and as it would be without.
    for room in [2f64.powi(-21), 0.0] {
        let full = FULL as f64 * (1.0 - room);
        let mut left = (full / 40_960.0).powi(2);
        for (at, p) in data.bytes[..16_384].iter_mut().enumerate() {
            // Alike up to the last few, which take what is left.
            let alike = 16_378_usize.saturating_sub(at).max(1);
            *p = (left.max(0.0) / alike as f64).sqrt().min(255.0) as u8;
            left -= (f64::from(*p) + 1.0 / 16_384.0).powi(2);
        }
        assert!((0.0..10.0).contains(&left), "{left}");
        let (rule, grid) = (|_: usize, _: f64| 1e300, Grid::new(1.0).unwrap());
        network.exact_sum(&weights, &data, &[0], &rule, grid, &mut sum).unwrap();
        let square: i128 = sum.iter().map(|&n| i128::from(n).pow(2)).sum();
        let length = (square as f64).sqrt();
        assert!(square <= FULL * FULL, "{length}");
        if room > 0.0 {
            assert_eq!((sum[0].abs() - 2) / i64::from(data.bytes[0]), 40_960);
            assert!(length > full + 50.0, "{length}: nothing was rounded up");
        }
    }
}

#[test]
#[should_panic(expected = "not what Samples::byte_scaling promises")]
fn inputs_that_are_not_as_promised_are_not_read() {
    let spec = NetworkSpec::logistic(784, 2);
    let mut data = images(&spec, 4, AFFINES[0]);
    data.stored = (1.0, -5.0);
    exact((&spec, None), &data, &[0, 1], &flat, 0.3);
}

#[test]
fn no_record_is_longer_than_the_bound() {
    let rules: [(&str, &Rule); 5] = [
        ("flat", &|_, norm| (0.3 / norm).min(1.0)),
        ("normalised", &|_, norm| 0.3 / norm),
        ("a hair too long", &|_, norm| 0.3 / norm * (1.0 + 1e-9)),
        ("huge", &|_, _| 1e300),
        ("negative", &|_, norm| -0.3 / norm),
    ];
    for spec in specs() {
        let mut longest = 0;
        for affine in AFFINES {
            let data = images(&spec, 12, affine);
            for (name, rule) in rules {
                for index in 0..12 {
                    let (sum, norms, _) = exact((&spec, None), &data, &[index], rule, 0.3);
                    let square: i128 = sum.iter().map(|&n| i128::from(n).pow(2)).sum();
                    assert!(square <= FULL * FULL, "{name}, {affine:?}: {square}");
                    assert!(norms[0].is_finite());
                    longest = longest.max(square);
                }
            }
        }
        assert!(longest as f64 >= 0.998 * (FULL * FULL) as f64, "{longest}: this shows nothing");
    }
}

/// Against gradients in floating point, weighed and added in double precision, and against the same bytes read as
/// floats.
#[test]
fn sums_are_close_to_real_ones() {
    for spec in specs() {
        for affine in &AFFINES[..3] {
            let mut data = images(&spec, 64, *affine);
            let (network, batch) = (spec.build().unwrap(), (0..64).collect::<Vec<u32>>());
            let expected = common::weighed_sum(&network, &network.init(3), &data, &batch, &flat);
            let (sum, norms, losses) = exact((&spec, None), &data, &batch, &flat, 0.3);
            let off = common::distance(&sum, Grid::new(0.3).unwrap(), &expected);
            assert!(off <= 2e-4, "{affine:?}: off by {off} of its length");
            data.tells = false;
            let (_, other_norms, other_losses) = exact((&spec, None), &data, &batch, &flat, 0.3);
            let pairs = norms.iter().zip(&other_norms).chain(losses.iter().zip(&other_losses));
            for (a, b) in pairs {
                assert!((a - b).abs() <= 1e-3 * b.abs() + 1e-4, "{affine:?}: {a}, {b}");
            }
        }
    }
}

/// A scaling that whole numbers cannot follow goes the way of floats, to their bits.
#[test]
fn a_scaling_that_leaves_bytes_too_little_is_read_as_floats() {
    let spec = NetworkSpec::logistic(100, 2);
    let mut data = images(&spec, 20, (1e-4, 1.0));
    let batch: Vec<u32> = (0..20).collect();
    let told = exact((&spec, None), &data, &batch, &flat, 0.3);
    data.tells = false;
    assert_eq!(exact((&spec, None), &data, &batch, &flat, 0.3), told);
}

#[test]
fn long_batches_of_the_longest_records_do_not_overflow() {
    let spec = NetworkSpec::logistic(64, 2);
    let mut data = images(&spec, 3, (1.0, 0.0));
    // Of little input the factor is the largest that there is.
    data.bytes[128..].fill(1);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for record in 0..3 {
        let (one, ..) = exact((&spec, None), &data, &[record], &|_, _| 1e9, 1.0);
        let batch = vec![record; 70_000];
        let (sum, ..) = pool.install(|| exact((&spec, None), &data, &batch, &|_, _| 1e9, 1.0));
        assert_eq!(sum, one.iter().map(|n| n * 70_000).collect::<Vec<_>>());
    }
}

/// Written down on a machine with AVX-512.
#[test]
fn the_bits_are_pinned() {
    let hashes: Vec<u64> = specs()
        .iter()
        .map(|spec| {
            let data = images(spec, 50, AFFINES[1]);
            let batch: Vec<u32> = (0..50).collect();
            let (sum, norms, losses) = exact((spec, None), &data, &batch, &flat, 0.3);
            let bytes = sum.iter().flat_map(|n| n.to_le_bytes());
            let floats = norms.iter().chain(&losses).flat_map(|x| x.to_bits().to_le_bytes());
            // FNV-1a.
            bytes.chain(floats).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
            })
        })
        .collect();
    assert_eq!(hashes, PINNED);
}

const PINNED: [u64; 4] = [
    9_734_495_613_447_069_186,
    10_892_919_303_744_271_041,
    11_070_774_198_878_251_953,
    7_289_510_063_645_374_000,
];
