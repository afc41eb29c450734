//! y = tanh x, in place; dx = dy·(1 − y²). Lane by lane, exact to an ulp or so: activations are few
//! beside the products around them.

use super::{Activation, AnyActivation, Describe};
use crate::error::Error;
use crate::layout::{Builder, Place, Value};
use crate::math;
use crate::simd::{MOST_LANES, Vector};

pub(crate) struct Tanh;

impl Describe for Tanh {
    fn kind(&self) -> &'static str {
        "tanh"
    }

    fn lay_out(&self, _: &Place<'_>, x: Value, to: &mut Builder) -> Result<Value, Error> {
        Ok(to.activation(AnyActivation::Tanh(Tanh), x))
    }
}

impl Activation for Tanh {
    #[inline(always)]
    fn apply<V: Vector>(&self, values: &mut [V]) {
        let mut lanes = [0.0f32; MOST_LANES];
        for value in values {
            value.store(&mut lanes);
            for lane in &mut lanes[..V::LANES] {
                *lane = math::tanh(*lane);
            }
            *value = V::load(&lanes);
        }
    }

    #[inline(always)]
    fn pull_back<V: Vector>(&self, outputs: &[V], gradient: &mut [V]) {
        let one = V::splat(1.0);
        for (gradient, &output) in gradient.iter_mut().zip(outputs) {
            *gradient = gradient.mul(one.sub(output.mul(output)));
        }
    }
}
