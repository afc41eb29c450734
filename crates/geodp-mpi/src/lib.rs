//! Processes started by `mpirun`: who this one is, and how it reaches the others.
//!
//! [`join`] asks the environment first: a process that no launcher started is alone and touches no MPI.
//! The link itself stands behind the feature `mpi`, because it needs the system's MPI library to build;
//! without it, a process that `mpirun` started as one of several says so and stops, instead of training
//! the same run beside its siblings.
//!
//! Seven calls are all a training needs of MPI. `shim.c` makes them, compiled by the library's own compiler,
//! because what a communicator is in C differs between libraries: a general binding has to generate itself with
//! libclang, which is more to install and to build than all of this crate. A failed call ends the whole job,
//! which is MPI's default and what a training wants: its folder can be resumed.

#[cfg(feature = "mpi")]
mod link;
#[cfg(feature = "mpi")]
mod sys;

use geodp::team::{Leader, Link};
use std::sync::Arc;

/// Whether MPI is in this program.
pub const BUILT_IN: bool = cfg!(feature = "mpi");

/// Who this process is. MPI ends with its last link.
pub enum Seat {
    /// Started by hand, or by a launcher as the only one.
    Alone,
    /// The first of several.
    Leader(Arc<Leader>),
    /// Another of several.
    Worker(Arc<dyn Link>),
}

/// Several processes that cannot become one training.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// `mpirun` started several processes of a program without MPI.
    #[error(
        "this is one of {0} processes that mpirun started, but this geodp is built without MPI, and each \
         would train on its own. Build it with: cargo build --release -p geodp-cli --features mpi"
    )]
    WithoutMpi(usize),
    /// MPI did not start.
    #[error("MPI could not be started: {0}")]
    NotStarted(String),
}

/// Whether a launcher started this process, and as one of how many if it says so.
fn launched(variable: impl Fn(&str) -> Option<String>) -> Option<usize> {
    // Open MPI; MPICH, Intel MPI and Slurm's PMI; PMIx says only who one is.
    let sizes = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];
    let size = sizes.iter().find_map(|name| variable(name)?.trim().parse().ok());
    size.or_else(|| variable("PMIX_RANK").map(|_| 1))
}

/// Finds out who this process is, and reaches the others.
///
/// # Errors
/// Several processes of a program without MPI; an MPI that does not start.
pub fn join() -> Result<Seat, JoinError> {
    join_as(launched(|name| std::env::var(name).ok()))
}

#[cfg(not(feature = "mpi"))]
fn join_as(launched: Option<usize>) -> Result<Seat, JoinError> {
    match launched {
        Some(size) if size > 1 => Err(JoinError::WithoutMpi(size)),
        _ => Ok(Seat::Alone),
    }
}

#[cfg(feature = "mpi")]
fn join_as(launched: Option<usize>) -> Result<Seat, JoinError> {
    if launched.is_none() {
        return Ok(Seat::Alone);
    }
    let link = link::World::start()?;
    Ok(match (link.rank(), link.size()) {
        (_, 1) => Seat::Alone,
        (0, _) => Seat::Leader(Leader::new(Arc::new(link))),
        _ => Seat::Worker(Arc::new(link)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_known_by_their_variables() {
        let with = |known: &'static [(&str, &str)]| {
            launched(move |name| {
                known.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("OMPI_COMM_WORLD_SIZE", "3")]), Some(3));
        assert_eq!(with(&[("PMI_SIZE", " 2 ")]), Some(2));
        assert_eq!(with(&[("PMIX_RANK", "0")]), Some(1));
    }

    #[cfg(not(feature = "mpi"))]
    #[test]
    fn several_processes_without_mpi_are_refused() {
        assert!(matches!(join_as(Some(1)), Ok(Seat::Alone)));
        assert_eq!(join_as(Some(2)).err(), Some(JoinError::WithoutMpi(2)));
    }
}
