//! The link over MPI: messages of bytes, one broadcast of weights, one reduction of integers.
//!
//! Calls are counted in `i32`, so long vectors go in chunks. A process that waits for its next request
//! looks for it and sleeps in between: MPI itself would burn a core, which hurts where processes share
//! one. Within a step everybody is expected at once, and MPI's own waiting is the quickest.

use crate::JoinError;
use crate::sys::{Calls, NotStarted};
use geodp::team::{Link, LinkError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Values of one collective call.
const CHUNK: usize = 1 << 26;
/// Looks without a pause before the first sleep: a request that follows at once is not delayed.
const QUICK_LOOKS: u32 = 2_000;
/// Sleep between later looks.
const PAUSE: Duration = Duration::from_micros(50);

/// All processes of the job.
pub(crate) struct World {
    rank: usize,
    size: usize,
    /// One thread at a time: what MPI was asked for.
    calls: Mutex<Calls>,
}

impl World {
    /// Starts MPI, which ends with the world.
    pub(crate) fn start() -> Result<Self, JoinError> {
        let calls = Calls::start().map_err(|failed| {
            let why = match failed {
                NotStarted::Before => "it was started before",
                NotStarted::OneThread => {
                    "it can be called from one thread only, and a training calls it from any, one at a time"
                }
            };
            JoinError::NotStarted(why.to_owned())
        })?;
        Ok(Self { rank: calls.rank(), size: calls.size(), calls: Mutex::new(calls) })
    }

    /// The calls, for as long as the turn is held.
    fn turn(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link for World {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn send(&self, to: usize, bytes: &[u8]) -> Result<(), LinkError> {
        if i32::try_from(bytes.len()).is_err() {
            return Err(LinkError(format!("{} bytes are too many for one message", bytes.len())));
        }
        self.turn().send(to, bytes);
        Ok(())
    }

    fn receive(&self, from: usize) -> Result<Vec<u8>, LinkError> {
        let mut looks = 0_u32;
        loop {
            if let Some(bytes) = self.turn().receive(from) {
                return Ok(bytes);
            }
            looks = looks.saturating_add(1);
            if looks > QUICK_LOOKS {
                std::thread::sleep(PAUSE);
            }
        }
    }

    fn broadcast(&self, values: &mut [f32]) -> Result<(), LinkError> {
        let mut calls = self.turn();
        values.chunks_mut(CHUNK).for_each(|chunk| calls.broadcast(chunk));
        Ok(())
    }

    fn sum_to_first(&self, values: &mut [i64]) -> Result<(), LinkError> {
        let mut calls = self.turn();
        values.chunks_mut(CHUNK).for_each(|chunk| calls.sum_to_first(chunk));
        Ok(())
    }
}
