//! The calls of `shim.c`, each safe: lengths come from slices, and only who holds [`Calls`] can call.
//!
//! MPI was asked for calls from any thread, one at a time, so there is one [`Calls`] in a process, and who shares
//! it puts it behind a mutex.
#![allow(unsafe_code)]

use std::ffi::c_int;

mod shim {
    use std::ffi::c_int;

    unsafe extern "C" {
        pub(super) fn geodp_mpi_start(rank: *mut c_int, size: *mut c_int) -> c_int;
        pub(super) fn geodp_mpi_stop();
        pub(super) fn geodp_mpi_send(to: c_int, bytes: *const u8, count: c_int);
        pub(super) fn geodp_mpi_waiting(from: c_int) -> c_int;
        pub(super) fn geodp_mpi_receive(from: c_int, bytes: *mut u8, count: c_int);
        pub(super) fn geodp_mpi_broadcast(values: *mut f32, count: c_int);
        pub(super) fn geodp_mpi_sum_to_first(values: *mut i64, count: c_int);
    }
}

/// A running MPI; ends it when dropped, after which none can be started again.
pub(crate) struct Calls {
    rank: c_int,
    size: c_int,
}

/// Why MPI did not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotStarted {
    /// It runs, or ran, in this process.
    Before,
    /// It cannot be called from more than one thread, not even in turn.
    OneThread,
}

/// A length as MPI counts.
///
/// # Panics
/// If it is 2³¹ or more: callers cut what is longer.
fn count(length: usize) -> c_int {
    c_int::try_from(length).expect("fewer than 2^31 values a call")
}

impl Calls {
    /// Starts MPI.
    pub(crate) fn start() -> Result<Self, NotStarted> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: both are written before the call returns, and not kept.
        let failed = unsafe { shim::geodp_mpi_start(&mut rank, &mut size) };
        match failed {
            0 => Ok(Self { rank, size }),
            1 => Err(NotStarted::Before),
            _ => {
                drop(Self { rank, size });
                Err(NotStarted::OneThread)
            }
        }
    }

    /// This process, counted from 0.
    pub(crate) fn rank(&self) -> usize {
        self.rank as usize
    }

    /// All processes.
    pub(crate) fn size(&self) -> usize {
        self.size as usize
    }

    /// A rank as MPI counts.
    ///
    /// # Panics
    /// If there is no such process: MPI would end the job without a word of who asked.
    fn peer(&self, rank: usize) -> c_int {
        assert!(rank < self.size(), "rank {rank} of {}", self.size);
        rank as c_int
    }

    pub(crate) fn send(&mut self, to: usize, bytes: &[u8]) {
        // SAFETY: MPI runs while `self` lives, and reads `bytes` only before it returns.
        unsafe { shim::geodp_mpi_send(self.peer(to), bytes.as_ptr(), count(bytes.len())) }
    }

    /// The message that waits, if one does.
    pub(crate) fn receive(&mut self, from: usize) -> Option<Vec<u8>> {
        let from = self.peer(from);
        // SAFETY: MPI runs while `self` lives.
        let length = usize::try_from(unsafe { shim::geodp_mpi_waiting(from) }).ok()?;
        let mut bytes = vec![0; length];
        // SAFETY: as above; `bytes` has the length of the message, which nobody else took: `self` is borrowed
        // alone.
        unsafe { shim::geodp_mpi_receive(from, bytes.as_mut_ptr(), count(length)) };
        Some(bytes)
    }

    /// Copies the values of the first process to all.
    pub(crate) fn broadcast(&mut self, values: &mut [f32]) {
        // SAFETY: MPI runs while `self` lives, and writes within `values` before it returns.
        unsafe { shim::geodp_mpi_broadcast(values.as_mut_ptr(), count(values.len())) }
    }

    /// Leaves the sums over all processes with the first.
    pub(crate) fn sum_to_first(&mut self, values: &mut [i64]) {
        // SAFETY: as in `broadcast`.
        unsafe { shim::geodp_mpi_sum_to_first(values.as_mut_ptr(), count(values.len())) }
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        // SAFETY: started by `start`, once.
        unsafe { shim::geodp_mpi_stop() }
    }
}
