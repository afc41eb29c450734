//! What a convolution is, what follows from it, and whether it goes by tiles.

use super::winograd::{Planes, Winograd};

/// What a convolution is, as PyTorch names it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConvShape {
    pub(crate) channels: usize,
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) outputs: usize,
    pub(crate) kernel: usize,
    pub(crate) stride: usize,
    pub(crate) padding: usize,
    pub(crate) bias: bool,
}

impl ConvShape {
    pub(crate) fn out_height(&self) -> usize {
        (self.height + 2 * self.padding - self.kernel) / self.stride + 1
    }

    pub(crate) fn out_width(&self) -> usize {
        (self.width + 2 * self.padding - self.kernel) / self.stride + 1
    }

    pub(crate) fn weights(&self) -> usize {
        self.outputs * self.channels * self.kernel * self.kernel
    }

    /// Planes of x.
    pub(crate) fn source(&self) -> Planes {
        Planes { height: self.height, width: self.width }
    }

    /// Planes of y.
    pub(crate) fn target(&self) -> Planes {
        Planes { height: self.out_height(), width: self.out_width() }
    }

    /// How tiles do it, if they can and it pays.
    pub(crate) fn tiles(&self) -> Option<Tiles> {
        let &Self { channels, outputs, padding, .. } = self;
        let fits = self.kernel == 3 && self.stride == 1 && padding <= 2;
        let (source, target) = (self.source(), self.target());
        (fits && Winograd::pays(channels, outputs)).then_some(Tiles {
            forward: Winograd { channels, outputs, source, target, padding },
            to_input: Winograd {
                channels: outputs,
                outputs: channels,
                source: target,
                target: source,
                padding: 2usize.saturating_sub(padding),
            },
        })
    }
}

/// A convolution by tiles, forward and to the input.
#[derive(Debug)]
pub(crate) struct Tiles {
    pub(crate) forward: Winograd,
    pub(crate) to_input: Winograd,
}
