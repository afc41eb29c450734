//! A layer at its place, what is asked of its input, and the message if it does not fit.

use super::build::{describe, size};
use crate::error::Error;

/// A layer at its place.
pub(crate) struct Place<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: &'static str,
    pub(crate) input: &'a [usize],
}

impl Place<'_> {
    pub(crate) fn wrong(&self, problem: impl Into<String>) -> Error {
        let Self { name, kind, input } = self;
        Error::Layer {
            layer: format!("{name} ({kind})"),
            input: describe(input),
            problem: problem.into(),
        }
    }

    pub(crate) fn planes(&self) -> Result<[usize; 3], Error> {
        let needed = "it needs an input of channels × height × width";
        self.input.try_into().map_err(|_| self.wrong(needed))
    }

    pub(crate) fn positive(&self, what: &str, value: usize) -> Result<(), Error> {
        match value {
            0 => Err(self.wrong(format!("its {what} must be at least 1"))),
            _ => Ok(()),
        }
    }

    /// Channels, height and width of the input, and the shape of its square windows.
    pub(crate) fn windows(
        &self,
        kernel: usize,
        stride: usize,
    ) -> Result<([usize; 3], Vec<usize>), Error> {
        let [channels, height, width] = self.planes()?;
        self.positive("kernel", kernel)?;
        self.positive("stride", stride)?;
        if kernel > height.min(width) {
            return Err(self.wrong(format!("its window of side {kernel} is larger than that")));
        }
        let out = vec![channels, (height - kernel) / stride + 1, (width - kernel) / stride + 1];
        Ok(([channels, height, width], out))
    }

    pub(crate) fn sane(&self, shape: &[usize], problem: &str) -> Result<(), Error> {
        size(shape).map(|_| ()).ok_or_else(|| self.wrong(problem))
    }
}
