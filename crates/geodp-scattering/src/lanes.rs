//! Images side by side: the vectors of the transform, and complex numbers of them.
//!
//! Lane i holds a value of image i, so nothing of an image is ever rearranged and images cannot mix.
//! Only additions, subtractions, multiplications and square roots are used, each rounded on its own
//! (no fused multiply-add): IEEE 754 fixes the result of each, so every instruction set gives the same
//! bits. Fused operations would save little here and be slow calls on a machine without them.

use std::ops::{Add, Mul, Sub};

/// The most images in one value of any type.
pub(crate) const MOST_LANES: usize = 16;

/// One value of each of [`LANES`](Self::LANES) images.
pub(crate) trait Lanes:
    Copy + Default + Send + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>
{
    /// Images in one value.
    const LANES: usize;
    /// Runs the cascade compiled for this type. Everything hot below `job` must be
    /// `#[inline(always)]`, and no closure may go through the standard library (`map`, `from_fn`):
    /// it would be compiled for any CPU, and every instruction in it would be a call.
    fn run(job: impl FnOnce());
    fn splat(value: f32) -> Self;
    /// The first `LANES` values of a slice; panics if it is shorter.
    fn load(from: &[f32]) -> Self;
    /// Into the first `LANES` places of a slice; panics if it is shorter.
    fn store(self, to: &mut [f32]);
    fn sqrt(self) -> Self;
}

/// A complex number of each image.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Complex<V> {
    pub(crate) re: V,
    pub(crate) im: V,
}

impl<V: Lanes> Complex<V> {
    #[inline(always)]
    pub(crate) fn new(re: V, im: V) -> Self {
        Complex { re, im }
    }

    #[inline(always)]
    pub(crate) fn scaled(self, factor: V) -> Self {
        Complex::new(self.re * factor, self.im * factor)
    }

    #[inline(always)]
    pub(crate) fn times(self, (re, im): (f32, f32)) -> Self {
        let (re, im) = (V::splat(re), V::splat(im));
        Complex::new(self.re * re - self.im * im, self.re * im + self.im * re)
    }

    /// self − i·other.
    #[inline(always)]
    pub(crate) fn add_turned(self, other: Self) -> Self {
        Complex::new(self.re + other.im, self.im - other.re)
    }

    /// self + i·other.
    #[inline(always)]
    pub(crate) fn sub_turned(self, other: Self) -> Self {
        Complex::new(self.re - other.im, self.im + other.re)
    }

    /// |z|. Squares below 1e-38 vanish, which is far below the rounding of any image's values.
    #[inline(always)]
    pub(crate) fn modulus(self) -> V {
        (self.re * self.re + self.im * self.im).sqrt()
    }
}

impl<V: Lanes> Add for Complex<V> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Complex::new(self.re + other.re, self.im + other.im)
    }
}

impl<V: Lanes> Sub for Complex<V> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Complex::new(self.re - other.re, self.im - other.im)
    }
}

/// Eight values in a plain array: any CPU, and the twin that the intrinsics are tested against.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(align(32))]
pub(crate) struct Portable([f32; 8]);

macro_rules! lane_by_lane {
    ($($trait:ident $method:ident $operator:tt),*) => {$(
        impl $trait for Portable {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Portable(std::array::from_fn(|lane| self.0[lane] $operator other.0[lane]))
            }
        }
    )*};
}
lane_by_lane!(Add add +, Sub sub -, Mul mul *);

impl Lanes for Portable {
    const LANES: usize = 8;
    #[inline]
    fn run(job: impl FnOnce()) {
        job();
    }
    #[inline(always)]
    fn splat(value: f32) -> Self {
        Portable([value; 8])
    }
    #[inline(always)]
    fn load(from: &[f32]) -> Self {
        let mut values = [0.0; 8];
        values.copy_from_slice(&from[..8]);
        Portable(values)
    }
    #[inline(always)]
    fn store(self, to: &mut [f32]) {
        to[..8].copy_from_slice(&self.0);
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Portable(self.0.map(f32::sqrt))
    }
}
