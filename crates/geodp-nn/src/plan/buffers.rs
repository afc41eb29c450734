//! Buffers for the gradients of slots: each from when it is first written until the step that made
//! the slot has used it, so that few are needed and they stay in the cache.

use super::{Op, Plan, ToInput};

impl Plan {
    /// Walks the steps backward as training will, and gives each slot that `depends` on parameters a
    /// buffer for its gradient.
    pub(super) fn assign_buffers(&mut self, depends: &[bool]) {
        let plan = self;
        plan.buffer_of = vec![None; plan.slots.len()];
        let mut free: Vec<usize> = Vec::new();
        plan.buffer_of[plan.logits] =
            Some(take(plan.slots[plan.logits], &mut plan.buffers, &mut free));
        for step in plan.steps.iter_mut().rev().filter(|step| step.backward) {
            let target = match step.op {
                Op::AddSlot { other } => other,
                Op::Relu | Op::Tanh => continue,
                _ => step.input,
            };
            if depends[target] {
                if plan.buffer_of[target].is_none() {
                    let at = take(plan.slots[target], &mut plan.buffers, &mut free);
                    plan.buffer_of[target] = Some(at);
                    step.to_input = ToInput::Write;
                } else {
                    let spare = take(plan.slots[target], &mut plan.buffers, &mut free);
                    free.push(spare);
                    step.to_input = ToInput::Add { spare };
                }
            }
            if step.input != step.output {
                free.extend(plan.buffer_of[step.output]);
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
