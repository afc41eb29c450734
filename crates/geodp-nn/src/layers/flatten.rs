//! Forgets the shape: nothing runs, only what later layers see changes.

use super::Describe;
use crate::error::Error;
use crate::layout::{Builder, Place, Value};

pub(crate) struct Flatten;

impl Describe for Flatten {
    fn kind(&self) -> &'static str {
        "flatten"
    }

    fn lay_out(&self, _: &Place<'_>, x: Value, _: &mut Builder) -> Result<Value, Error> {
        Ok(Value { shape: vec![x.shape.iter().product()], ..x })
    }
}
