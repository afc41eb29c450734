//! The cascade compiled for the CPU it runs on, from one source.
//!
//! The same operations in the same order in every version, none of them fused: the bits are the same.

use crate::cascade::{Cascade, PATHS, Workspace};
use crate::lanes::{LANES, Lanes, Portable};

/// Which compiled version runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// What every CPU of the target has.
    Portable,
    /// Eight lanes in one register.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Level {
    /// All that this machine can run, the best last.
    pub(crate) fn available() -> Vec<Self> {
        #[allow(unused_mut, reason = "other architectures add nothing")]
        let mut levels = vec![Level::Portable];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            levels.push(Level::Avx2);
        }
        levels
    }

    /// Room for this version.
    pub(crate) fn work(self, cascade: &Cascade) -> Box<dyn Work> {
        match self {
            Level::Portable => Box::new(Bench::<Portable>::new(cascade)),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => Box::new(Bench::<crate::avx2::Avx2>::new(cascade)),
        }
    }
}

/// Eight images at work, whatever the vectors are.
pub(crate) trait Work: Send {
    /// Sets the pixel at `place` of the padded images.
    fn set(&mut self, place: usize, values: [f32; LANES]);
    /// Runs the cascade.
    fn run(&mut self, cascade: &Cascade);
    /// Coefficient `at` of every image.
    fn get(&self, at: usize) -> [f32; LANES];
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
}

impl<V: Lanes> Work for Bench<V> {
    fn set(&mut self, place: usize, values: [f32; LANES]) {
        self.work.image[place] = V::from_array(values);
    }

    fn run(&mut self, cascade: &Cascade) {
        V::run(
            #[inline(always)]
            || cascade.run(&mut self.work, &mut self.out),
        );
    }

    fn get(&self, at: usize) -> [f32; LANES] {
        self.out[at].to_array()
    }
}
