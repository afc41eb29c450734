//! y = max(0, x), in place; dx = dy where y > 0. NaN passes through, so that a broken sample shows.

use super::{Activation, AnyActivation, Describe};
use crate::error::Error;
use crate::layout::{Builder, Place, Value};
use crate::simd::Vector;

pub(crate) struct Relu;

impl Describe for Relu {
    fn kind(&self) -> &'static str {
        "relu"
    }

    fn lay_out(&self, _: &Place<'_>, x: Value, to: &mut Builder) -> Result<Value, Error> {
        Ok(to.activation(AnyActivation::Relu(Relu), x))
    }
}

impl Activation for Relu {
    #[inline(always)]
    fn apply<V: Vector>(&self, values: &mut [V]) {
        let zero = V::zero();
        for value in values {
            *value = zero.max(*value);
        }
    }

    #[inline(always)]
    fn pull_back<V: Vector>(&self, outputs: &[V], gradient: &mut [V]) {
        for (gradient, &output) in gradient.iter_mut().zip(outputs) {
            *gradient = gradient.where_positive(output);
        }
    }
}
