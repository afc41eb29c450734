//! GeoDP by the textbook: convert to angles, add noise, convert back.
//!
//! Slow and plain. It draws the same noise from the same addresses as [`Geometric`]'s fast route,
//! which is tested against it, and it serves the rare inputs that the fast route does not
//! (entries spanning more than 140 decimal orders, noise of more than 10⁵ radians).

use super::Geometric;
use crate::Error;
use crate::kernels::rotate::CHUNK;
use crate::noise::{NoiseSource, Purpose};
use crate::real::Real;
use crate::sphere::{Spherical, to_rectangular, to_spherical};

/// The release of `mechanism` in hyper-spherical coordinates: what the paper's direction error is
/// measured on.
///
/// # Errors
/// A gradient that is too short or not finite; a noisy magnitude beyond f64.
pub fn perturb_spherical<R: Real>(
    mechanism: &Geometric,
    mean_gradient: &[R],
    noise: &NoiseSource,
    step: u64,
) -> Result<Spherical, Error> {
    let mut release = to_spherical(mean_gradient)?;
    let angle_std = mechanism.angle_std(mean_gradient.len());
    release.magnitude +=
        mechanism.magnitude_std() * noise.stream(Purpose::Magnitude, step, 0)?.first_normal();
    if !release.magnitude.is_finite() {
        return Err(Error::NormOverflow);
    }
    let mut turns = [0.0; CHUNK];
    for (index, chunk) in release.angles.chunks_mut(CHUNK).enumerate() {
        let turns = &mut turns[..chunk.len()];
        noise.stream(Purpose::Angles, step, index as u64)?.fill_angles(angle_std, turns);
        for (angle, turn) in chunk.iter_mut().zip(turns) {
            *angle += *turn;
        }
    }
    Ok(release)
}

/// The release of `mechanism` in rectangular coordinates.
///
/// # Errors
/// As [`perturb_spherical`].
pub fn perturb<R: Real>(
    mechanism: &Geometric,
    mean_gradient: &[R],
    noise: &NoiseSource,
    step: u64,
) -> Result<Vec<R>, Error> {
    let release = perturb_spherical(mechanism, mean_gradient, noise, step)?;
    Ok(to_rectangular(&release)?.into_iter().map(R::from_f64).collect())
}
