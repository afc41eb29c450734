//! Buffers for the gradients of slots: each from when it is first written until the step that made
//! the slot has used it, so that few are needed and they stay in the cache.

use super::{Layout, Op, ToInput};

impl Layout {
    /// Walks the steps backward as training will, and gives each slot that `depends` on parameters a
    /// buffer for its gradient.
    pub(super) fn assign_buffers(&mut self, depends: &[bool]) {
        let layout = self;
        layout.buffer_of = vec![None; layout.slots.len()];
        let mut free: Vec<usize> = Vec::new();
        layout.buffer_of[layout.logits] =
            Some(take(layout.slots[layout.logits], &mut layout.buffers, &mut free));
        for step in layout.steps.iter_mut().rev().filter(|step| step.backward) {
            let target = match step.op {
                Op::AddSlot { other } => other,
                Op::Activation(_) => continue,
                _ => step.input,
            };
            if depends[target] {
                if layout.buffer_of[target].is_none() {
                    let at = take(layout.slots[target], &mut layout.buffers, &mut free);
                    layout.buffer_of[target] = Some(at);
                    step.to_input = ToInput::Write;
                } else {
                    let spare = take(layout.slots[target], &mut layout.buffers, &mut free);
                    free.push(spare);
                    step.to_input = ToInput::Add { spare };
                }
            }
            if step.input != step.output {
                free.extend(layout.buffer_of[step.output]);
            }
        }
    }
}

/// The free buffer that fits best; else the largest, grown; else a new one.
fn take(len: usize, buffers: &mut Vec<usize>, free: &mut Vec<usize>) -> usize {
    let fits = |&&at: &&usize| buffers[at] >= len;
    let best = free.iter().filter(fits).min_by_key(|&&at| buffers[at]);
    let best = best.or(free.iter().max_by_key(|&&at| buffers[at])).copied();
    let at = best.unwrap_or_else(|| {
        buffers.push(0);
        buffers.len() - 1
    });
    buffers[at] = buffers[at].max(len);
    free.retain(|&other| other != at);
    at
}
