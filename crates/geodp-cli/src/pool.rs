//! The threads that commands compute on.
//!
//! What computes runs as one of the pool's own threads: from outside of a pool every parallel part of a step is handed
//! to a thread that sleeps, and on small models waking it takes as long as the step.

/// What rayon takes for the number of cores, or of `RAYON_NUM_THREADS`.
const AS_MANY_AS_CORES: u64 = 0;

/// Runs `work` in a pool of this many threads, or of as many as there are cores.
pub(crate) fn in_pool<T: Send>(
    threads: Option<u64>,
    work: impl FnOnce() -> T + Send,
) -> anyhow::Result<T> {
    let threads = threads.unwrap_or(AS_MANY_AS_CORES) as usize;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    Ok(pool.install(work))
}
