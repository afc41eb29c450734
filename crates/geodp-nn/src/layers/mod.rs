//! The layers, one file each. A layer sees one block of samples at a time, values as
//! `[feature][lane]`, lane = sample, and never mixes lanes: a network that mixes samples (batch
//! normalisation, for one) cannot be expressed.
//!
//! Shapes: x, dx `[input features]`, y, dy `[output features]`, dx = ∂loss/∂x for each lane alone.
//! Convolutions and group normalisation leave their per-sample parameter gradients in the lanes;
//! linear layers hand out (x, dy) instead, see [`linear`].

pub(crate) mod avg_pool;
pub(crate) mod conv2d;
mod conv2d_gradient;
mod correlate;
pub(crate) mod cross_entropy;
pub(crate) mod group_norm;
pub(crate) mod linear;
pub(crate) mod max_pool;
pub(crate) mod relu;
pub(crate) mod residual;
pub(crate) mod tanh;

use crate::simd::{Kernel, Vector};

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

/// A layer with an output of its own. Methods must be `#[inline(always)]`, see [`Kernel`].
pub(crate) trait Layer {
    fn forward<V: Vector>(&self, io: Forward<'_, V>);
    fn backward<V: Vector>(&self, io: Backward<'_, V>);
}

/// An activation that replaces its input by its output, and whose derivative is known from that.
pub(crate) trait Activation {
    fn apply<V: Vector>(&self, values: &mut [V]);
    /// `gradient ← gradient · derivative`, from the outputs.
    fn pull_back<V: Vector>(&self, outputs: &[V], gradient: &mut [V]);
}

/// [`Layer::forward`] as a kernel.
pub(crate) struct RunForward<'a, T, V>(pub(crate) &'a T, pub(crate) Forward<'a, V>);

impl<T: Layer, V: Vector> Kernel for RunForward<'_, T, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        self.0.forward(self.1);
    }
}

/// [`Layer::backward`] as a kernel.
pub(crate) struct RunBackward<'a, T, V>(pub(crate) &'a T, pub(crate) Backward<'a, V>);

impl<T: Layer, V: Vector> Kernel for RunBackward<'_, T, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        self.0.backward(self.1);
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

/// Splits `count` into the fewest parts of at most `largest`, as equal as can be.
pub(crate) fn even_parts(count: usize, largest: usize) -> impl Iterator<Item = usize> {
    let parts = count.div_ceil(largest).max(1);
    let (size, longer) = (count / parts, count % parts);
    (0..parts).map(move |part| size + usize::from(part < longer)).filter(|&size| size > 0)
}

/// Splits `count` into `sizes`, given from large to small and ending in 1: few sizes, because a
/// register tile of each is compiled for each instruction set.
pub(crate) fn parts_of(count: usize, sizes: &[usize]) -> impl Iterator<Item = usize> {
    let mut left = count;
    std::iter::from_fn(move || {
        let size = sizes.iter().copied().find(|&size| size <= left)?;
        left -= size;
        Some(size)
    })
}

#[cfg(test)]
mod tests {
    use super::{even_parts, parts_of};

    #[test]
    fn parts_cover_the_count() {
        for count in 0..40 {
            for largest in 1..9 {
                let parts: Vec<usize> = even_parts(count, largest).collect();
                assert_eq!(parts.iter().sum::<usize>(), count);
                assert!(parts.iter().all(|&part| part <= largest && part > 0));
            }
            assert_eq!(parts_of(count, &[5, 2, 1]).sum::<usize>(), count);
        }
        assert_eq!(even_parts(16, 6).collect::<Vec<_>>(), [6, 5, 5]);
        assert_eq!(parts_of(11, &[5, 2, 1]).collect::<Vec<_>>(), [5, 5, 1]);
    }
}
