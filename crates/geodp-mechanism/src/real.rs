//! The two number types gradients come in. All arithmetic of the mechanism is in f64.

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// `f32` or `f64`: how a gradient is stored. The mechanism computes in f64 for both.
pub trait Real: Copy + Default + Send + Sync + sealed::Sealed + 'static {
    /// Whether squares of values of this type can overflow or vanish in f64,
    /// so that sums of squares need a scale first.
    const SQUARES_OVERFLOW_F64: bool;
    /// To f64, exactly.
    fn to_f64(self) -> f64;
    /// From f64, rounded to nearest.
    fn from_f64(value: f64) -> Self;
    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

impl Real for f32 {
    const SQUARES_OVERFLOW_F64: bool = false;
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value as f32
    }
    #[inline(always)]
    fn is_finite(self) -> bool {
        f32::is_finite(self)
    }
}

impl Real for f64 {
    const SQUARES_OVERFLOW_F64: bool = true;
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }
    #[inline(always)]
    fn is_finite(self) -> bool {
        f64::is_finite(self)
    }
}

/// Refuses an empty or non-finite gradient, naming the first bad coordinate.
pub(crate) fn check_gradient<R: Real>(
    gradient: &[R],
    least_dim: usize,
) -> Result<(), crate::Error> {
    check_length(gradient, least_dim)?;
    check_finite(gradient)
}

/// Refuses a gradient of too few coordinates.
pub(crate) fn check_length<R>(gradient: &[R], least_dim: usize) -> Result<(), crate::Error> {
    if gradient.is_empty() {
        return Err(crate::Error::Empty);
    }
    if gradient.len() < least_dim {
        return Err(crate::Error::TooFewDimensions(gradient.len()));
    }
    Ok(())
}

/// Refuses a coordinate that is not finite, naming the first.
pub(crate) fn check_finite<R: Real>(gradient: &[R]) -> Result<(), crate::Error> {
    for (block_index, block) in gradient.chunks(1024).enumerate() {
        // A count instead of an early exit: this loop vectorises.
        let bad: u32 = block.iter().map(|x| u32::from(!x.is_finite())).sum();
        if bad > 0 {
            let offset = block.iter().position(|x| !x.is_finite()).unwrap_or(0);
            let value = block[offset].to_f64();
            return Err(crate::Error::NotFinite { index: block_index * 1024 + offset, value });
        }
    }
    Ok(())
}
