//! The link over MPI: messages of bytes, one broadcast of weights, one reduction of integers.
//!
//! Calls are counted in `i32`, so long vectors go in chunks. A process that waits for its next request
//! looks for it and sleeps in between: MPI itself would burn a core, which hurts where processes share
//! one. Within a step everybody is expected at once, and MPI's own waiting is the quickest.

use crate::JoinError;
use geodp::team::{Link, LinkError};
use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Destination, MatchedReceiveVec, Root, Source};
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
    turn: Mutex<()>,
}

impl World {
    /// Starts MPI.
    pub(crate) fn start() -> Result<(Universe, Self), JoinError> {
        let Some((universe, threading)) = mpi::initialize_with_threading(Threading::Serialized)
        else {
            return Err(JoinError::NotStarted("it was started before".into()));
        };
        if threading < Threading::Serialized {
            return Err(JoinError::NotStarted(format!(
                "it offers {threading:?} calls, and a training calls it from any thread, one at a time"
            )));
        }
        let world = universe.world();
        let (rank, size) = (world.rank() as usize, world.size() as usize);
        Ok((universe, Self { rank, size, turn: Mutex::new(()) }))
    }

    /// The communicator, for as long as the turn is held; its handle is the same whenever it is asked.
    fn world(&self) -> (MutexGuard<'_, ()>, SimpleCommunicator) {
        (self.turn.lock().unwrap_or_else(PoisonError::into_inner), SimpleCommunicator::world())
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
        let (_turn, world) = self.world();
        world.process_at_rank(to as i32).send(bytes);
        Ok(())
    }

    fn receive(&self, from: usize) -> Result<Vec<u8>, LinkError> {
        let mut looks = 0_u32;
        loop {
            let (turn, world) = self.world();
            if let Some(matched) = world.process_at_rank(from as i32).immediate_matched_probe() {
                return Ok(matched.matched_receive_vec().0);
            }
            drop(turn);
            looks = looks.saturating_add(1);
            if looks > QUICK_LOOKS {
                std::thread::sleep(PAUSE);
            }
        }
    }

    fn broadcast(&self, values: &mut [f32]) -> Result<(), LinkError> {
        let (_turn, world) = self.world();
        let first = world.process_at_rank(0);
        values.chunks_mut(CHUNK).for_each(|chunk| first.broadcast_into(chunk));
        Ok(())
    }

    fn sum_to_first(&self, values: &mut [i64]) -> Result<(), LinkError> {
        let (_turn, world) = self.world();
        let (first, sum) = (world.process_at_rank(0), SystemOperation::sum());
        for chunk in values.chunks_mut(CHUNK) {
            if self.rank == 0 {
                let own = chunk.to_vec();
                first.reduce_into_root(&own[..], chunk, sum);
            } else {
                first.reduce_into(&*chunk, sum);
            }
        }
        Ok(())
    }
}
