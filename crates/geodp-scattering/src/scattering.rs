//! Images in, scattering coefficients out.
//!
//! kymatio's padding: an axis of N pixels is read as (N/4 + 2)·4 places, the extra ones shared by both
//! ends (the odd one goes to the far end) and filled by reflection that does not repeat the edge.

use crate::ScatteringError;
use crate::cascade::{Cascade, PATHS};
use crate::lanes::MOST_LANES;
use crate::level::{Level, Work};
use crate::matrices::Matrices;

/// The transform of images of one size.
///
/// ```
/// use geodp_scattering::Scattering;
///
/// let scattering = Scattering::new(28, 28)?;
/// assert_eq!(scattering.output_shape(), [81, 7, 7]);
/// let image = vec![0.5; 28 * 28];
/// let mut coefficients = vec![0.0; scattering.output_len()];
/// scattering.transform(&[&image], &mut scattering.scratch(), &mut [&mut coefficients]);
/// // A flat image has no edges at any scale: only its mean is left.
/// assert!((coefficients[0] - 0.5).abs() < 1e-4 && coefficients[49..].iter().all(|c| c.abs() < 1e-6));
/// # Ok::<(), geodp_scattering::ScatteringError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scattering {
    height: usize,
    width: usize,
    cascade: Cascade,
    level: Level,
    /// Pixel of the image at each place of the padded one.
    places: Vec<usize>,
}

/// Room for the images of one call at work; make one a thread.
pub struct Scratch(Box<dyn Work>);

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scratch")
    }
}

/// Where each place of the padded axis reads the image.
pub(crate) fn reflected(length: usize) -> Vec<usize> {
    let padded = (length / 4 + 2) * 4;
    let before = (padded - length) / 2;
    let period = 2 * (length - 1);
    let place = |at: usize| {
        let at = (at + 2 * period - before) % period;
        if at < length { at } else { period - at }
    };
    (0..padded).map(place).collect()
}

impl Scattering {
    /// Planes that one call transforms at most.
    pub const BLOCK: usize = MOST_LANES;

    /// Makes the filters for images of this size.
    ///
    /// # Errors
    /// [`ScatteringError::TooSmall`] if a side is shorter than 4 pixels.
    pub fn new(height: usize, width: usize) -> Result<Self, ScatteringError> {
        let level = Level::available().pop().unwrap_or(Level::Portable);
        Self::at_level(height, width, level)
    }

    /// The same, by one of the versions that this machine can run: for comparing them.
    ///
    /// # Errors
    /// Those of [`new`](Self::new), and [`ScatteringError::NotOfThisMachine`].
    pub fn at_level(height: usize, width: usize, level: Level) -> Result<Self, ScatteringError> {
        if height.min(width) < 4 {
            return Err(ScatteringError::TooSmall { height, width });
        }
        if !Level::available().contains(&level) {
            return Err(ScatteringError::NotOfThisMachine { level });
        }
        let (rows, columns) = (reflected(height), reflected(width));
        let cascade = Cascade::new(rows.len(), columns.len());
        let row = |row: usize| columns.iter().map(move |column| row * width + column);
        let places = rows.iter().copied().flat_map(row).collect();
        Ok(Scattering { height, width, cascade, level, places })
    }

    /// Paths, rows and columns of the coefficients of one plane: 81, height/4 and width/4.
    pub fn output_shape(&self) -> [usize; 3] {
        [PATHS, self.height / 4, self.width / 4]
    }

    /// Coefficients of one plane.
    pub fn output_len(&self) -> usize {
        PATHS * self.cascade.path_len()
    }

    /// The same transform as matrices, for machines that know no Fourier transform.
    pub fn matrices(&self) -> Matrices {
        Matrices::new(self.height, self.width)
    }

    /// Room to work in.
    pub fn scratch(&self) -> Scratch {
        Scratch(self.level.work(&self.cascade))
    }

    /// Transforms up to [`BLOCK`](Self::BLOCK) planes, each one channel of an image, row by row. A
    /// plane's coefficients depend on nothing but the plane.
    ///
    /// # Panics
    /// If there are more planes than [`BLOCK`](Self::BLOCK), or a slice has another length than
    /// height × width or [`output_len`](Self::output_len).
    pub fn transform(&self, planes: &[&[f32]], scratch: &mut Scratch, out: &mut [&mut [f32]]) {
        assert!(planes.len() <= Self::BLOCK && planes.len() == out.len(), "one output a plane");
        assert!(planes.iter().all(|plane| plane.len() == self.height * self.width), "plane size");
        assert!(out.iter().all(|out| out.len() == self.output_len()), "output size");
        let Scratch(work) = scratch;
        let lanes = work.lanes();
        for (planes, out) in planes.chunks(lanes).zip(out.chunks_mut(lanes)) {
            work.transform(&self.cascade, &self.places, planes, out);
        }
    }
}
