//! y = body(x) + shortcut(x). The branches are ordinary layers; what remains is adding values
//! forward and gradients backward, and copying where a branch would overwrite x.

use super::{Describe, LayerSpec};
use crate::error::Error;
use crate::layout::{Builder, Place, Value, describe};
use crate::simd::{Kernel, Vector};
use serde::{Deserialize, Serialize};

/// body(x) + shortcut(x).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResidualSpec {
    /// Prefix of the names of the layers inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The layers that are learnt.
    pub body: Vec<LayerSpec>,
    /// What x passes through beside them; empty for x itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shortcut: Vec<LayerSpec>,
}

impl Describe for ResidualSpec {
    fn kind(&self) -> &'static str {
        "residual"
    }

    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn lay_out(&self, place: &Place<'_>, x: Value, to: &mut Builder) -> Result<Value, Error> {
        let prefix = format!("{}.", place.name);
        let was_held = to.hold(&x, true);
        let of_body = to.layers(&self.body, &prefix, x.clone())?;
        let of_shortcut = to.layers(&self.shortcut, &prefix, x.clone())?;
        to.hold(&x, was_held);
        if of_body.shape != of_shortcut.shape {
            let (body, shortcut) = (describe(&of_body.shape), describe(&of_shortcut.shape));
            return Err(
                place.wrong(format!("its body gives {body} but its shortcut gives {shortcut}"))
            );
        }
        Ok(to.sum(of_body, &of_shortcut, &x))
    }
}

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
