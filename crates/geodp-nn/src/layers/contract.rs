//! What a layer must be able to do: [`Describe`] when a network is laid out, [`Layer`] or
//! [`Activation`] when it runs; and both as kernels, compiled for each instruction set.

use crate::error::Error;
use crate::layout::{Builder, Place, Value};
use crate::simd::{Kernel, Vector};

/// A layer's fields in a description.
pub(crate) trait Describe {
    /// `conv2d`, `linear`, … as in the description.
    fn kind(&self) -> &'static str;

    /// Prefix of its parameters' names, if it was given one.
    fn name(&self) -> Option<&str> {
        None
    }

    /// Checks that it fits the value `x`, adds its parameters and steps, and gives its output.
    fn lay_out(&self, place: &Place<'_>, x: Value, to: &mut Builder) -> Result<Value, Error>;
}

/// What a layer needs to compute y from x.
pub(crate) struct Forward<'a, V> {
    pub(crate) x: &'a [V],
    pub(crate) y: &'a mut [V],
    /// The layer's parameters as its `pack` arranged them.
    pub(crate) packed: &'a [f32],
    pub(crate) scratch: &'a mut [V],
}

/// What a layer needs to compute dx and its per-sample parameter gradients from dy.
pub(crate) struct Backward<'a, V> {
    pub(crate) x: &'a [V],
    pub(crate) dy: &'a [V],
    /// Absent where nothing before the layer has parameters.
    pub(crate) dx: Option<&'a mut [V]>,
    pub(crate) packed: &'a [f32],
    pub(crate) scratch: &'a mut [V],
    /// Per-sample gradient of the layer's parameters, `[parameter][lane]`, PyTorch's layout.
    pub(crate) gradient: &'a mut [V],
    /// Add to `gradient` instead of replacing it.
    pub(crate) accumulate: bool,
}

/// A layer with an output of its own. Methods over vectors must be `#[inline(always)]`, see
/// [`Kernel`].
pub(crate) trait Layer {
    /// Whether it runs on vectors of several registers; where it does not, its kernels are not
    /// compiled for them.
    const RUNS_WIDE: bool = true;

    /// Vectors of scratch space that it needs.
    fn scratch(&self) -> usize {
        0
    }

    /// Appends its parameters as its kernels want them.
    fn pack<V: Vector>(&self, parameters: &[f32], packed: &mut Vec<f32>) {
        packed.extend_from_slice(parameters);
    }

    fn forward<V: Vector>(&self, io: Forward<'_, V>);
    fn backward<V: Vector>(&self, io: Backward<'_, V>);
}

/// An activation that replaces its input by its output, and whose derivative is known from that.
pub(crate) trait Activation {
    fn apply<V: Vector>(&self, values: &mut [V]);
    /// `gradient ← gradient · derivative`, from the outputs.
    fn pull_back<V: Vector>(&self, outputs: &[V], gradient: &mut [V]);
}

/// Whether `T` is compiled for `V`.
const fn runs_on<T: Layer, V: Vector>() -> bool {
    T::RUNS_WIDE || V::PARTS == 1
}

/// [`Layer::forward`] as a kernel.
pub(crate) struct RunForward<'a, T, V>(pub(crate) &'a T, pub(crate) Forward<'a, V>);

impl<T: Layer, V: Vector> Kernel for RunForward<'_, T, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        if const { runs_on::<T, V>() } {
            self.0.forward(self.1);
        } else {
            unreachable!("networks with such a layer get narrow vectors");
        }
    }
}

/// [`Layer::backward`] as a kernel.
pub(crate) struct RunBackward<'a, T, V>(pub(crate) &'a T, pub(crate) Backward<'a, V>);

impl<T: Layer, V: Vector> Kernel for RunBackward<'_, T, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        if const { runs_on::<T, V>() } {
            self.0.backward(self.1);
        } else {
            unreachable!("networks with such a layer get narrow vectors");
        }
    }
}

/// [`Activation::apply`] as a kernel.
pub(crate) struct RunApply<'a, T, V>(pub(crate) &'a T, pub(crate) &'a mut [V]);

impl<T: Activation, V: Vector> Kernel for RunApply<'_, T, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        self.0.apply(self.1);
    }
}

/// [`Activation::pull_back`] as a kernel.
pub(crate) struct RunPullBack<'a, T, V>(
    pub(crate) &'a T,
    pub(crate) &'a [V],
    pub(crate) &'a mut [V],
);

impl<T: Activation, V: Vector> Kernel for RunPullBack<'_, T, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        self.0.pull_back(self.1, self.2);
    }
}
