//! Clipping: a weight w(n) of a per-sample gradient's norm n, and the sensitivity it guarantees.
//!
//! | rule | w(n) | norm of w·g |
//! |---|---|---|
//! | flat (Abadi et al. 2016, [arXiv:1607.00133](https://arxiv.org/abs/1607.00133)) | min(1, C/n) | ≤ C |
//! | AUTO-S (Bu et al. 2023, [arXiv:2206.07136](https://arxiv.org/abs/2206.07136)) | C/(n + γ) | < C |
//! | PSAC (Xia et al. 2023, [arXiv:2212.00328](https://arxiv.org/abs/2212.00328)) | C/(n + r/(n + r)) | < C |
//!
//! A rule may be anything: [`Clip`] holds it to w(n)·n ≤ C, and only a [`Clip`] hands out a
//! [`Sensitivity`], which is the only thing a perturbation accepts. So noise always fits clipping.

use crate::Error;
use std::fmt::Debug;
use std::sync::Arc;

/// A threshold C > 0, checked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClipNorm(f64);

impl ClipNorm {
    /// Checks that `clip_norm` is finite and positive.
    ///
    /// # Errors
    /// [`Error::ClipNorm`] otherwise.
    pub fn new(clip_norm: f64) -> Result<Self, Error> {
        if clip_norm.is_finite() && clip_norm > 0.0 {
            Ok(Self(clip_norm))
        } else {
            Err(Error::ClipNorm(clip_norm))
        }
    }

    /// C.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// How far one record can move the clipped sum, in Euclidean norm. Made by [`Clip`] only.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sensitivity(ClipNorm);

impl Sensitivity {
    /// The bound on the norm of one record's contribution to the sum.
    pub fn get(self) -> f64 {
        self.0.get()
    }
}

/// A clipping rule: which weight a gradient of a given norm should get.
pub trait ClipRule: Debug + Send + Sync {
    /// The threshold C that the weighted norm must not exceed.
    fn clip_norm(&self) -> ClipNorm;
    /// The weight wanted for a finite norm ≥ 0. [`Clip`] lowers it where weight·norm > C.
    fn weight(&self, norm: f64) -> f64;
}

/// A clipping rule held to its promise.
#[derive(Debug, Clone)]
pub struct Clip {
    rule: Arc<dyn ClipRule>,
    /// As the rule said once, so that a sensitivity given out stays true.
    clip_norm: ClipNorm,
}

impl Clip {
    /// Takes any rule, the user's own included.
    pub fn new(rule: impl ClipRule + 'static) -> Self {
        Self { clip_norm: rule.clip_norm(), rule: Arc::new(rule) }
    }

    /// Flat clipping at C.
    ///
    /// # Errors
    /// [`Error::ClipNorm`] unless C is finite and positive.
    pub fn flat(clip_norm: f64) -> Result<Self, Error> {
        Ok(Self::new(Flat { clip_norm: ClipNorm::new(clip_norm)? }))
    }

    /// AUTO-S; `gamma` is usually [`AutoS::GAMMA`].
    ///
    /// # Errors
    /// [`Error::ClipNorm`], or [`Error::ClipConstant`] unless 0 < γ < 1.
    pub fn auto_s(clip_norm: f64, gamma: f64) -> Result<Self, Error> {
        let gamma = fraction("γ", gamma)?;
        Ok(Self::new(AutoS { clip_norm: ClipNorm::new(clip_norm)?, gamma }))
    }

    /// PSAC; `r` is usually [`Psac::R`].
    ///
    /// # Errors
    /// [`Error::ClipNorm`], or [`Error::ClipConstant`] unless 0 < r < 1.
    pub fn psac(clip_norm: f64, r: f64) -> Result<Self, Error> {
        let r = fraction("r", r)?;
        Ok(Self::new(Psac { clip_norm: ClipNorm::new(clip_norm)?, r }))
    }

    /// The weight of a gradient of this norm.
    ///
    /// # Guarantee
    /// weight·norm ≤ C up to one rounding, and weight ≥ 0, whatever the rule answers. A norm that
    /// is NaN, infinite or negative gets weight 0: such a gradient contributes nothing.
    pub fn weight(&self, norm: f64) -> f64 {
        if !(norm.is_finite() && norm >= 0.0) {
            return 0.0;
        }
        let wanted = self.rule.weight(norm);
        if !wanted.is_finite() || wanted < 0.0 {
            return 0.0;
        }
        let clip_norm = self.clip_norm.get();
        if wanted * norm > clip_norm { clip_norm / norm } else { wanted }
    }

    /// The sensitivity that [`weight`](Self::weight) enforces: C, under add/remove of a record.
    pub fn sensitivity(&self) -> Sensitivity {
        Sensitivity(self.clip_norm)
    }
}

fn fraction(name: &'static str, value: f64) -> Result<f64, Error> {
    if value > 0.0 && value < 1.0 { Ok(value) } else { Err(Error::ClipConstant { name, value }) }
}

/// min(1, C/n).
#[derive(Debug, Clone, Copy)]
struct Flat {
    clip_norm: ClipNorm,
}

impl ClipRule for Flat {
    fn clip_norm(&self) -> ClipNorm {
        self.clip_norm
    }
    fn weight(&self, _norm: f64) -> f64 {
        // Weight 1, held to C by `Clip`: that is min(1, C/n).
        1.0
    }
}

/// C/(n + γ): every gradient is scaled close to norm C.
#[derive(Debug, Clone, Copy)]
pub struct AutoS {
    clip_norm: ClipNorm,
    gamma: f64,
}

impl AutoS {
    /// The paper's γ.
    pub const GAMMA: f64 = 0.01;
}

impl ClipRule for AutoS {
    fn clip_norm(&self) -> ClipNorm {
        self.clip_norm
    }
    fn weight(&self, norm: f64) -> f64 {
        self.clip_norm.get() / (norm + self.gamma)
    }
}

/// C/(n + r/(n + r)): like AUTO-S, but small gradients get smaller weights. Not monotone: the
/// largest weight, C/(√r(2 − √r)), is at n = √r − r.
#[derive(Debug, Clone, Copy)]
pub struct Psac {
    clip_norm: ClipNorm,
    r: f64,
}

impl Psac {
    /// The paper's r.
    pub const R: f64 = 0.1;
}

impl ClipRule for Psac {
    fn clip_norm(&self) -> ClipNorm {
        self.clip_norm
    }
    fn weight(&self, norm: f64) -> f64 {
        self.clip_norm.get() / (norm + self.r / (norm + self.r))
    }
}
