//! y = body(x) + shortcut(x). The branches are ordinary layers; what remains is adding values
//! forward and gradients backward, and copying where a branch would overwrite x.

use crate::simd::{Kernel, Vector};

/// `to ← to + from`.
pub(crate) struct AddInto<'a, V> {
    pub(crate) from: &'a [V],
    pub(crate) to: &'a mut [V],
}

impl<V: Vector> Kernel for AddInto<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (to, from) in self.to.iter_mut().zip(self.from) {
            *to = to.add(*from);
        }
    }
}
