//! What this machine can do at most, as one line of JSON: multiply-adds of single precision in registers
//! on all cores, and bytes read from memory: `cargo run --release -p geodp --example roofline`.
//!
//! Both are the best of many short stretches, so that company on the machine lowers them little: the
//! roof is what could be had, not what was left.

#![allow(unsafe_code, reason = "calls code compiled for a CPU feature after detection")]
#![allow(clippy::needless_range_loop, reason = "iterators over chains keep them out of registers")]

use std::hint::black_box;
use std::time::Instant;

/// Chains of multiply-adds: more than latency times units of any CPU so far.
const CHAINS: usize = 12;
/// Lanes of one chain: one AVX register, or half a 512-bit one.
const LANES: usize = 8;
const STRETCHES: usize = 60;

#[inline(always)]
fn multiply_adds<const L: usize>(repeats: usize) -> f32 {
    let factor = black_box([0.999_999f32; L]);
    let addend = black_box([1e-6f32; L]);
    let mut chains = black_box([[1.0f32; L]; CHAINS]);
    for _ in 0..repeats {
        for chain in &mut chains {
            for lane in 0..L {
                chain[lane] = chain[lane].mul_add(factor[lane], addend[lane]);
            }
        }
    }
    black_box(chains).iter().flatten().sum()
}

#[cfg(target_arch = "x86_64")]
mod compiled {
    use super::{CHAINS, LANES, multiply_adds};
    use core::arch::x86_64::*;
    use std::hint::black_box;

    #[target_feature(enable = "avx2,fma")]
    fn avx2(repeats: usize) -> f32 {
        multiply_adds::<LANES>(repeats)
    }

    /// With intrinsics, because the compiler makes gathers and scatters of plain arrays here.
    #[target_feature(enable = "avx512f")]
    fn avx512(repeats: usize) -> f32 {
        let factor = black_box(_mm512_set1_ps(0.999_999));
        let addend = black_box(_mm512_set1_ps(1e-6));
        let mut chains = black_box([_mm512_set1_ps(1.0); CHAINS]);
        for _ in 0..repeats {
            for at in 0..CHAINS {
                chains[at] = _mm512_fmadd_ps(chains[at], factor, addend);
            }
        }
        let total =
            black_box(chains).into_iter().fold(_mm512_setzero_ps(), |a, b| _mm512_add_ps(a, b));
        _mm512_reduce_add_ps(total)
    }

    /// Lanes that the widest registers hold, and the loop over them.
    pub(crate) fn widest() -> (usize, fn(usize) -> f32) {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the feature was detected just before.
            (2 * LANES, |repeats| unsafe { avx512(repeats) })
        } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the features were detected just before.
            (LANES, |repeats| unsafe { avx2(repeats) })
        } else {
            (LANES, multiply_adds::<LANES>)
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod compiled {
    use super::{LANES, multiply_adds};

    /// Lanes of one chain, and the loop over them.
    pub(crate) fn widest() -> (usize, fn(usize) -> f32) {
        (LANES, multiply_adds::<LANES>)
    }
}

/// Least seconds that `work` took on all threads at once.
fn least(threads: usize, work: impl Fn(usize) + Sync) -> f64 {
    (0..STRETCHES)
        .map(|_| {
            let start = Instant::now();
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let work = &work;
                    scope.spawn(move || work(thread));
                }
            });
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

fn main() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (lanes, run) = compiled::widest();
    let repeats = 4_000_000;
    let seconds = least(threads, |_| {
        black_box(run(repeats));
    });
    let flop = (2 * CHAINS * lanes * repeats * threads) as f64;
    // Far beyond any cache.
    let memory = vec![1u64; 1 << 25];
    let part = memory.len() / threads;
    let reading = least(threads, |thread| {
        let part = &memory[thread * part..][..part];
        let mut sums = [0u64; 8];
        for eight in part.as_chunks::<8>().0 {
            for (sum, value) in sums.iter_mut().zip(eight) {
                *sum = sum.wrapping_add(*value);
            }
        }
        black_box(sums);
    });
    println!(
        "{{\"threads\":{threads},\"peak_gflops\":{:.1},\"bandwidth_gb_per_second\":{:.1}}}",
        1e-9 * flop / seconds,
        1e-9 * (8 * part * threads) as f64 / reading,
    );
}
