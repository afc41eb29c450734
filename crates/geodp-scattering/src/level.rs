//! The cascade compiled for the CPU it runs on, from one source.
//!
//! The same operations in the same order in every version, none of them fused: the bits are the same.

use crate::cascade::{Cascade, PATHS, Workspace};
use crate::lanes::{Lanes, MOST_LANES, Portable};
#[cfg(target_arch = "x86_64")]
use crate::x86::{Avx2, Avx512};

/// Coefficients that are handed out at once.
const COLUMNS: usize = 16;

/// Which compiled version runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// What every CPU of the target has.
    Portable,
    /// Eight lanes in one register.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Sixteen lanes in one register.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// All that this machine can run, the best last.
    pub fn available() -> Vec<Self> {
        #[allow(unused_mut, reason = "other architectures add nothing")]
        let mut levels = vec![Level::Portable];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            levels.push(Level::Avx2);
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f") {
            levels.push(Level::Avx512);
        }
        levels
    }

    /// Room for this version.
    pub(crate) fn work(self, cascade: &Cascade) -> Box<dyn Work> {
        match self {
            Level::Portable => Box::new(Bench::<Portable>::new(cascade)),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => Box::new(Bench::<Avx2>::new(cascade)),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => Box::new(Bench::<Avx512>::new(cascade)),
        }
    }
}

/// Images at work, whatever the vectors are.
pub(crate) trait Work: Send {
    /// Images at once.
    fn lanes(&self) -> usize;
    /// Transforms up to `lanes` planes; `places` says where each place of the padded image reads one.
    fn transform(
        &mut self,
        cascade: &Cascade,
        places: &[usize],
        planes: &[&[f32]],
        out: &mut [&mut [f32]],
    );
}

struct Bench<V> {
    work: Workspace<V>,
    out: Vec<V>,
}

impl<V: Lanes> Bench<V> {
    fn new(cascade: &Cascade) -> Self {
        let out = vec![V::default(); PATHS * cascade.path_len()];
        Bench { work: cascade.workspace(), out }
    }

    /// From one plane after the other to one value of each; lanes without a plane are 0.
    #[inline(always)]
    fn read(&mut self, places: &[usize], planes: &[&[f32]]) {
        for (vector, place) in self.work.image.iter_mut().zip(places) {
            let mut values = [0.0; MOST_LANES];
            for (value, plane) in values.iter_mut().zip(planes) {
                *value = plane[*place];
            }
            *vector = V::load(&values);
        }
    }

    /// The way back, [`COLUMNS`] coefficients at a time: whole cache lines of every plane.
    #[inline(always)]
    fn write(&self, out: &mut [&mut [f32]]) {
        let mut tile = [0.0; COLUMNS * MOST_LANES];
        for (number, vectors) in self.out.chunks(COLUMNS).enumerate() {
            for (values, vector) in tile.chunks_exact_mut(V::LANES).zip(vectors) {
                vector.store(values);
            }
            for (lane, out) in out.iter_mut().enumerate() {
                let out = &mut out[number * COLUMNS..][..vectors.len()];
                for (out, values) in out.iter_mut().zip(tile.chunks_exact(V::LANES)) {
                    *out = values[lane];
                }
            }
        }
    }
}

impl<V: Lanes> Work for Bench<V> {
    fn lanes(&self) -> usize {
        V::LANES
    }

    fn transform(
        &mut self,
        cascade: &Cascade,
        places: &[usize],
        planes: &[&[f32]],
        out: &mut [&mut [f32]],
    ) {
        V::run(
            #[inline(always)]
            || {
                self.read(places, planes);
                cascade.run(&mut self.work, &mut self.out);
                self.write(out);
            },
        );
    }
}
