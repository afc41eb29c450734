//! Clipping and perturbation of NumPy arrays, in place and without a copy.
//!
//! Arrays are flat (gradients side by side are rows), C-contiguous, `float32` or `float64`. The
//! interpreter's lock is free while Rust works on them; an array lent twice at once is refused.

use crate::error;
use crate::noise::NoiseSource;
use crate::polar::PolarState;
use geodp_mechanism::clip::{AutoS, Psac};
use geodp_mechanism::{
    CertifiedPolar, Clip, ExactGaussian, ExactMean, Gaussian, Geometric, Grid, Mechanism, Perturb,
    PerturbSum, Real,
};
use numpy::{
    Element, IntoPyArray, PyArray, PyArray1, PyArrayMethods, PyReadwriteArray,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use rayon::prelude::*;

/// A mechanism with its settings, checked: perturbs means in floating point and exact sums.
#[pyclass(frozen, module = "geodp.mechanism")]
pub(crate) struct Perturbation {
    clip: Clip,
    noise_multiplier: f64,
    batch: u64,
    mechanism: Mechanism,
    /// δ₁ of certified GeoDP; else 0.
    miss: f64,
}

#[pymethods]
impl Perturbation {
    /// `beta` belongs to "geodp", `miss` to "geodp-certified".
    #[new]
    fn new(
        clip_norm: f64,
        noise_multiplier: f64,
        batch: u64,
        mechanism: &str,
        beta: Option<f64>,
        miss: Option<f64>,
    ) -> PyResult<Self> {
        let mechanism = Mechanism::named(mechanism, beta).map_err(error::mechanism)?;
        let miss = match (mechanism, miss) {
            (Mechanism::None, _) => {
                return Err(error::argument("mechanism \"none\" perturbs nothing; call nothing"));
            }
            (Mechanism::GeodpCertified(_), Some(miss)) => miss,
            (Mechanism::GeodpCertified(_), None) => {
                return Err(error::argument(
                    "mechanism \"geodp-certified\" needs miss, the chance for each release that \
                     its public radius is too large; it is charged on δ. Say 1e-12, for instance",
                ));
            }
            (_, None) => 0.0,
            (_, Some(_)) => {
                return Err(error::argument(
                    "miss is certified GeoDP's: leave it out, or say mechanism=\"geodp-certified\"",
                ));
            }
        };
        let clip = Clip::flat(clip_norm).map_err(error::mechanism)?;
        let made = Self { clip, noise_multiplier, batch, mechanism, miss };
        made.floating::<f32>(1).map_err(error::mechanism)?;
        Ok(made)
    }

    /// Perturbs a clipped mean gradient, in place; answers the step used. `history` is certified
    /// GeoDP's, which learns of the release.
    #[pyo3(signature = (mean, noise, step = None, history = None))]
    fn perturb(
        &self,
        mean: &Bound<'_, PyAny>,
        noise: &NoiseSource,
        step: Option<u64>,
        history: Option<&PolarState>,
    ) -> PyResult<u64> {
        if let Ok(array) = mean.cast::<PyArray1<f32>>() {
            self.release(array, noise, step, history)
        } else if let Ok(array) = mean.cast::<PyArray1<f64>>() {
            self.release(array, noise, step, history)
        } else {
            Err(wrong_array(mean, "one-dimensional"))
        }
    }
}

impl Perturbation {
    /// The threshold it is scaled for.
    pub(crate) fn clip_norm(&self) -> f64 {
        self.clip.sensitivity().get()
    }

    fn floating<R: Real>(&self, dim: usize) -> Result<Box<dyn Perturb<R>>, geodp_mechanism::Error> {
        let (sensitivity, sigma) = (self.clip.sensitivity(), self.noise_multiplier);
        Ok(match self.mechanism {
            Mechanism::None | Mechanism::Dp => {
                Box::new(Gaussian::new(sensitivity, sigma, self.batch)?)
            }
            Mechanism::Geodp { beta } => {
                Box::new(Geometric::new(sensitivity, sigma, self.batch, beta)?)
            }
            Mechanism::GeodpCertified(_) => Box::new(self.polar(dim)?),
        })
    }

    /// The same for sums of whole numbers.
    pub(crate) fn exact(&self, dim: usize) -> Result<Box<dyn PerturbSum>, geodp_mechanism::Error> {
        let (sensitivity, sigma) = (self.clip.sensitivity(), self.noise_multiplier);
        let grid = Grid::new(geodp_nn::Grid::BITS)?;
        Ok(match self.mechanism {
            Mechanism::None | Mechanism::Dp => {
                Box::new(ExactGaussian::new(sensitivity, sigma, grid, self.batch)?)
            }
            Mechanism::Geodp { beta } => {
                let turned = Geometric::new(sensitivity, sigma, self.batch, beta)?;
                Box::new(ExactMean::new(turned, sensitivity, grid, self.batch)?)
            }
            Mechanism::GeodpCertified(_) => Box::new(self.polar(dim)?),
        })
    }

    fn polar(&self, dim: usize) -> Result<CertifiedPolar, geodp_mechanism::Error> {
        let Mechanism::GeodpCertified(settings) = self.mechanism else {
            return Err(geodp_mechanism::Error::UnknownMechanism(self.mechanism.name().to_owned()));
        };
        let (sensitivity, grid) = (self.clip.sensitivity(), Grid::new(geodp_nn::Grid::BITS)?);
        let params = settings.params(self.miss)?;
        CertifiedPolar::new(sensitivity, self.noise_multiplier, grid, self.batch, dim, params)
    }

    fn release<R: Real + Element>(
        &self,
        array: &Bound<'_, PyArray1<R>>,
        noise: &NoiseSource,
        step: Option<u64>,
        history: Option<&PolarState>,
    ) -> PyResult<u64> {
        let mut lent = lend(array)?;
        let gradient = lent.as_slice_mut()?;
        let mechanism = self.floating::<R>(gradient.len().max(1)).map_err(error::mechanism)?;
        let mut before = self.history(history)?;
        let step = noise.step(step);
        let work = || mechanism.perturb_step(gradient, &noise.inner, step, &mut before);
        array.py().detach(work).map_err(error::mechanism)?;
        if let Some(history) = history {
            history.set(before);
        }
        Ok(step)
    }

    /// What is known of earlier releases; certified GeoDP does not work without.
    pub(crate) fn history(
        &self,
        history: Option<&PolarState>,
    ) -> PyResult<geodp_mechanism::PolarState> {
        match (self.mechanism, history) {
            (Mechanism::GeodpCertified(_), None) => Err(error::argument(
                "mechanism \"geodp-certified\" needs history, a PolarState that all releases of a \
                 training share: it decides from earlier releases how to make the next",
            )),
            (_, history) => Ok(history.map(PolarState::get).unwrap_or_default()),
        }
    }
}

/// Clips each row of `gradients` in place and answers the norms they had. The rule is "flat",
/// "auto-s" or "psac"; a row that is not finite becomes 0.
#[pyfunction]
pub(crate) fn clip_rows<'py>(
    gradients: &Bound<'py, PyAny>,
    clip_norm: f64,
    rule: &str,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let clip = parse_clip(clip_norm, rule)?;
    if let Ok(array) = gradients.cast::<PyArray<f32, numpy::Ix2>>() {
        clip_each(array, &clip)
    } else if let Ok(array) = gradients.cast::<PyArray<f64, numpy::Ix2>>() {
        clip_each(array, &clip)
    } else {
        Err(wrong_array(gradients, "two-dimensional"))
    }
}

/// A clipping rule by its name.
pub(crate) fn parse_clip(clip_norm: f64, rule: &str) -> PyResult<Clip> {
    match rule {
        "flat" => Clip::flat(clip_norm),
        "auto-s" => Clip::auto_s(clip_norm, AutoS::GAMMA),
        "psac" => Clip::psac(clip_norm, Psac::R),
        _ => {
            let text = format!("unknown clipping rule '{rule}': use one of flat, auto-s, psac");
            return Err(error::argument(text));
        }
    }
    .map_err(error::mechanism)
}

fn clip_each<'py, R: Real + Element>(
    array: &Bound<'py, PyArray<R, numpy::Ix2>>,
    clip: &Clip,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let mut lent = lend(array)?;
    let dim = lent.as_array().ncols();
    let rows = lent.as_slice_mut()?;
    if dim == 0 {
        return Err(error::argument("the gradients have no coordinates"));
    }
    let clip_row = |row: &mut [R]| {
        let norm = row.iter().map(|g| g.to_f64() * g.to_f64()).sum::<f64>().sqrt();
        let weight = clip.weight(norm);
        for g in row {
            *g = if weight == 0.0 { R::default() } else { R::from_f64(weight * g.to_f64()) };
        }
        norm
    };
    let work = || rows.par_chunks_exact_mut(dim).map(clip_row).collect::<Vec<f64>>();
    Ok(array.py().detach(work).into_pyarray(array.py()))
}

/// The array for writing, by this call alone.
pub(crate) fn lend<'py, R: Element, D: numpy::ndarray::Dimension>(
    array: &Bound<'py, PyArray<R, D>>,
) -> PyResult<PyReadwriteArray<'py, R, D>> {
    if !array.is_c_contiguous() {
        return Err(error::argument(
            "the array is not C-contiguous; pass numpy.ascontiguousarray(array)",
        ));
    }
    array.try_readwrite().map_err(|reason| error::argument(format!("the array: {reason}")))
}

pub(crate) fn wrong_array(found: &Bound<'_, PyAny>, dimensions: &str) -> PyErr {
    let kind = found.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    let shape = found.getattr("shape").map_or_else(|_| String::new(), |s| format!(" of shape {s}"));
    let dtype =
        found.getattr("dtype").map_or_else(|_| String::new(), |d| format!(" and dtype {d}"));
    PyTypeError::new_err(format!(
        "expected a {dimensions} NumPy array of float32 or float64, found {kind}{shape}{dtype}"
    ))
}
