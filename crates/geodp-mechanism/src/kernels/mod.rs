//! The vector kernels, each one safe source compiled several times: portable, AVX2 + FMA, AVX-512.
//!
//! Every multiply-add is an explicit `mul_add` and every loop has a fixed order, so all versions
//! give the same bits: a seed means the same noise on every machine. `unsafe` is only the call of
//! a version after its CPU feature was detected, in the macro below, and the prefetch.

// The only unsafe code of the crate: calls of `#[target_feature]` functions after detection, and the
// prefetch, which reads nothing.
#![allow(unsafe_code)]

pub(crate) mod angles;
pub(crate) mod cipher;
pub(crate) mod elementary;
pub(crate) mod movement;
pub(crate) mod normal;
pub(crate) mod prefetch;
pub(crate) mod rotate;
pub(crate) mod rounded;
pub(crate) mod scan;

/// Which compiled version of the kernels runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// Plain Rust. Multiply-adds fall back to software where the target has no FMA.
    Portable,
    /// 4 f64 lanes with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 8 f64 lanes.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The best level of this machine. Detection is cached by the standard library.
    #[inline]
    pub(crate) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                return Self::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Self::Avx2;
            }
        }
        Self::Portable
    }

    /// Every level this machine can run, for comparing them.
    #[cfg(test)]
    pub(crate) fn available() -> Vec<Self> {
        let mut levels = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                levels.push(Self::Avx2);
            }
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                levels.push(Self::Avx512);
            }
        }
        levels
    }
}

/// Defines `$name(level, args…)`, which runs the `#[inline(always)]` function `$source` compiled
/// for `level`. It may be generic in one type: `$name<R: Bound>`.
macro_rules! multiversion {
    (
        $(#[$doc:meta])* $name:ident $(<$generic:ident: $bound:path>)? = $source:path;
        ($($arg:ident: $type:ty),*) $(-> $ret:ty)?
    ) => {
        $(#[$doc])*
        pub(crate) fn $name $(<$generic: $bound>)? (
            level: $crate::kernels::Level, $($arg: $type),*
        ) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2 $(<$generic: $bound>)? ($($arg: $type),*) $(-> $ret)? {
                $source($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
            fn avx512 $(<$generic: $bound>)? ($($arg: $type),*) $(-> $ret)? {
                $source($($arg),*)
            }
            match level {
                $crate::kernels::Level::Portable => $source($($arg),*),
                // SAFETY: a `Level` other than `Portable` exists only after its features were
                // detected on this machine (`Level::best`, `Level::available`).
                #[cfg(target_arch = "x86_64")]
                $crate::kernels::Level::Avx2 => unsafe { avx2($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::kernels::Level::Avx512 => unsafe { avx512($($arg),*) },
            }
        }
    };
}
pub(crate) use multiversion;
