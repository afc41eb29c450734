//! Views of images: mirrored and moved by a pixel or two, so that training sees more than was stored.
//!
//! ```toml
//! [views]
//! flip = true       # mirrored left to right
//! shift = 1         # moved by so many pixels to each of the four sides; 0 for not at all
//! each_step = 2     # views of a record in one step; all if absent
//! ```
//!
//! A record with all its views is one unit of privacy: its gradient is the mean over the views of a step
//! and is clipped as one, so that views cost no ε. Row r·V + v is view v of record r; view 0 is the
//! record as it is. A pixel that moves in from beyond the edge repeats the edge. Views of pixels are made
//! when they are read; where a model sees features, those of all views are computed once.

use geodp_nn::Samples;
use serde::{Deserialize, Serialize};

use crate::{DataError, Dataset, FeatureSpec, Fingerprint, Shape, Units};

/// Which views of a record there are, and how many a step uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ViewSpec {
    /// Mirrored left to right.
    pub flip: bool,
    /// Moved by so many pixels up, down, left and right.
    pub shift: usize,
    /// Views of a record in one step, chosen anew in each; all if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each_step: Option<usize>,
}

/// One way of looking at an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    flip: bool,
    /// Pixels down and to the right.
    down: isize,
    right: isize,
}

impl ViewSpec {
    /// The views of images of this shape, the image itself first.
    ///
    /// # Errors
    /// Records that are no images, shifts beyond them, or more views a step than there are.
    pub fn views(&self, shape: Shape) -> Result<Vec<View>, DataError> {
        let refuse = |reason: String| Err(DataError::Argument(reason));
        let Shape { height, width, .. } = shape;
        if (self.flip || self.shift > 0) && height.min(width) <= self.shift.max(1) {
            return refuse(format!(
                "views are of images, and records of {height} × {width} values cannot be moved by {} \
                 pixels; leave [views] out, or make shift smaller",
                self.shift
            ));
        }
        let far = self.shift as isize;
        let moves = [(0, 0), (-far, 0), (far, 0), (0, -far), (0, far)];
        let moves = if far == 0 { &moves[..1] } else { &moves[..] };
        let flips = if self.flip { &[false, true][..] } else { &[false] };
        let views: Vec<View> = flips
            .iter()
            .flat_map(|&flip| moves.iter().map(move |&(down, right)| View { flip, down, right }))
            .collect();
        match self.each_step {
            Some(count) if count == 0 || count > views.len() => refuse(format!(
                "views.each_step is {count}; there are {} views of a record{}",
                views.len(),
                if views.len() == 1 { ": say flip = true or shift = 1" } else { "" }
            )),
            _ => Ok(views),
        }
    }
}

impl View {
    /// Row of the image at each row of the view.
    pub fn rows(&self, height: usize) -> Vec<usize> {
        moved(self.down, height).collect()
    }

    /// Column of the image at each column of the view.
    pub fn columns(&self, width: usize) -> Vec<usize> {
        let mirrored = |x: usize| if self.flip { width - 1 - x } else { x };
        moved(self.right, width).map(mirrored).collect()
    }

    /// Writes the view of `input` to `out`.
    fn write(&self, shape: Shape, input: &[f32], out: &mut [f32]) {
        let Shape { height, width, .. } = shape;
        let (rows, columns) = (self.rows(height), self.columns(width));
        let planes = input.chunks_exact(height * width).zip(out.chunks_exact_mut(height * width));
        for (input, out) in planes {
            for (line, y) in out.chunks_exact_mut(width).zip(&rows) {
                let source = &input[y * width..][..width];
                for (value, x) in line.iter_mut().zip(&columns) {
                    *value = source[*x];
                }
            }
        }
    }
}

/// Where each of `size` places reads, moved by so many; beyond the edge is the edge.
fn moved(by: isize, size: usize) -> impl Iterator<Item = usize> {
    (0..size).map(move |to| to.saturating_add_signed(-by).min(size - 1))
}

/// A dataset's records in all their views.
#[derive(Clone, Debug)]
pub struct Viewed {
    rows: Rows,
    views: Vec<View>,
    each_step: usize,
}

#[derive(Clone, Debug)]
enum Rows {
    /// The records; views are made on reading.
    Made(Dataset),
    /// The features of every view, view by view of each record, and the originals' fingerprint.
    Computed(Dataset, Fingerprint),
}

impl Viewed {
    /// The views of `data`.
    ///
    /// # Errors
    /// As [`ViewSpec::views`].
    pub fn new(spec: &ViewSpec, data: Dataset) -> Result<Self, DataError> {
        let views = spec.views(data.shape())?;
        let each_step = spec.each_step.unwrap_or(views.len());
        Ok(Viewed { rows: Rows::Made(data), views, each_step })
    }

    /// The same with the features of all views computed. `progress` as in [`FeatureSpec::apply`].
    ///
    /// # Errors
    /// As [`FeatureSpec::apply`].
    pub fn with_features(
        self,
        features: &FeatureSpec,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Self, DataError> {
        let Rows::Made(data) = &self.rows else { return Ok(self) };
        let made = features.apply_to_views(data, &self, progress)?;
        let rows = Rows::Computed(made, features.fingerprint_of(data.fingerprint()));
        Ok(Viewed { rows, ..self })
    }

    /// The records as they are, sharing what is stored.
    ///
    /// # Errors
    /// None that a dataset made here can give.
    pub fn originals(&self) -> Result<Dataset, DataError> {
        match &self.rows {
            Rows::Made(data) => Ok(data.clone()),
            Rows::Computed(rows, fingerprint) => {
                let originals: Vec<usize> = (0..rows.len()).step_by(self.views.len()).collect();
                Ok(rows.subset(&originals)?.with_fingerprint(*fingerprint))
            }
        }
    }

    /// A record with its views, as one unit each.
    ///
    /// # Errors
    /// If there are 2³² rows and more.
    pub fn units(&self) -> Result<Units, DataError> {
        Units::even(self.len() / self.views.len(), self.views.len(), self.each_step)
    }
}

impl Samples for Viewed {
    fn len(&self) -> usize {
        match &self.rows {
            Rows::Made(data) => data.len() * self.views.len(),
            Rows::Computed(rows, _) => rows.len(),
        }
    }

    fn input_len(&self) -> usize {
        let (Rows::Made(data) | Rows::Computed(data, _)) = &self.rows;
        data.input_len()
    }

    fn read_input(&self, index: usize, out: &mut [f32]) {
        match &self.rows {
            Rows::Computed(rows, _) => rows.read_input(index, out),
            Rows::Made(data) => match self.views[index % self.views.len()] {
                view if view == View::default() => data.read_input(index / self.views.len(), out),
                view => {
                    let mut input = vec![0.0; out.len()];
                    data.read_input(index / self.views.len(), &mut input);
                    view.write(data.shape(), &input, out);
                }
            },
        }
    }

    fn label(&self, index: usize) -> u32 {
        match &self.rows {
            Rows::Made(data) => data.label(index / self.views.len()),
            Rows::Computed(rows, _) => rows.label(index),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Records;

    fn image() -> Dataset {
        let shape = Shape::image(2, 3, 3);
        let values = (0..36).map(|at| at as f32).collect();
        let records = Records::from_floats(shape, values, "as it is").unwrap();
        Dataset::new("two", records, vec![0, 1], vec!["a".into(), "b".into()]).unwrap()
    }

    fn row(views: &Viewed, index: usize) -> Vec<f32> {
        let mut out = vec![f32::NAN; views.input_len()];
        views.read_input(index, &mut out);
        out
    }

    #[test]
    fn views_are_mirrored_and_moved_with_the_edge_repeated() {
        let spec = ViewSpec { flip: true, shift: 1, each_step: None };
        let views = Viewed::new(&spec, image()).unwrap();
        assert_eq!(views.len(), 2 * 10);
        let first_plane = |index| row(&views, index)[..9].to_vec();
        assert_eq!(first_plane(0), [0., 1., 2., 3., 4., 5., 6., 7., 8.]);
        assert_eq!(first_plane(1), [3., 4., 5., 6., 7., 8., 6., 7., 8.], "up");
        assert_eq!(first_plane(2), [0., 1., 2., 0., 1., 2., 3., 4., 5.], "down");
        assert_eq!(first_plane(3), [1., 2., 2., 4., 5., 5., 7., 8., 8.], "left");
        assert_eq!(first_plane(4), [0., 0., 1., 3., 3., 4., 6., 6., 7.], "right");
        assert_eq!(first_plane(5), [2., 1., 0., 5., 4., 3., 8., 7., 6.], "mirrored");
        assert_eq!(row(&views, 5)[9..12], [11., 10., 9.], "every channel");
        assert_eq!((views.label(9), views.label(10)), (0, 1));
        assert_eq!(row(&views, 10), (18..36).map(|at| at as f32).collect::<Vec<_>>());
        let units = views.units().unwrap();
        assert_eq!((units.len(), units.rows(1).len(), units.most_rows()), (2, 10, 10));
    }

    #[test]
    fn computed_features_of_views_are_those_of_the_views() {
        let shape = Shape::image(1, 8, 8);
        let values = (0..3 * 64).map(|at| (at * at % 97) as f32 / 97.0).collect();
        let records = Records::from_floats(shape, values, "made").unwrap();
        let data = Dataset::new("d", records, vec![0, 1, 1], vec!["a".into(), "b".into()]).unwrap();
        let spec = ViewSpec { flip: true, shift: 0, each_step: Some(1) };
        let features = FeatureSpec::scattering();
        let pixels = Viewed::new(&spec, data.clone()).unwrap();
        let made = pixels.clone().with_features(&features, &|_, _| ()).unwrap();
        assert_eq!((made.len(), made.units().unwrap().most_rows()), (6, 1));
        let alone = features.apply_to(&data, &|_, _| ()).unwrap();
        let originals = made.originals().unwrap();
        assert_eq!(originals.fingerprint(), alone.fingerprint());
        let all: Vec<f32> = (0..pixels.len()).flat_map(|at| row(&pixels, at)).collect();
        let all = Records::from_floats(shape, all, "views").unwrap();
        let expected = features.apply(&all, &|_, _| ()).unwrap();
        for at in 0..6 {
            let mut out = vec![0.0; expected.input_len()];
            expected.read_input(at, &mut out);
            assert_eq!(row(&made, at), out, "row {at}");
            assert_eq!(made.label(at), data.label(at / 2));
        }
        let mut out = vec![0.0; originals.input_len()];
        originals.read_input(2, &mut out);
        assert_eq!(out, row(&made, 4));
    }

    #[test]
    fn views_that_cannot_be_are_refused() {
        let shape = Shape::image(1, 28, 28);
        let views = |flip, shift, each_step| ViewSpec { flip, shift, each_step }.views(shape);
        assert_eq!(views(true, 2, Some(10)).unwrap().len(), 10);
        assert!(views(true, 0, Some(3)).unwrap_err().to_string().contains("there are 2 views"));
        assert!(views(false, 0, Some(2)).unwrap_err().to_string().contains("say flip"));
        assert!(views(false, 30, None).is_err());
        let table = Shape::image(5, 1, 1);
        assert!(ViewSpec { flip: true, ..Default::default() }.views(table).is_err());
    }
}
