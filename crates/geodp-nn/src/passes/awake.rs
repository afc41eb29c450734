//! Keeps the pool's other threads awake from one pass to the next.
//!
//! Between two passes stands what one thread does alone: noise, an update, packing of weights. Rayon's threads fall
//! asleep meanwhile, after some ten microseconds, and waking one takes longer than a small step. So a pass leaves
//! each of them a task that looks for work, and ends when there has been none for [`PATIENCE`].

use rayon::Yield;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a thread looks for work: beyond that a step is so long that waking is lost in it.
const PATIENCE: Duration = Duration::from_micros(200);

/// Who looks for work.
#[derive(Default)]
pub(crate) struct Awake {
    looking: Arc<AtomicUsize>,
}

impl Awake {
    /// Asks every other thread of this pool to stay awake; nothing outside of a pool.
    pub(crate) fn keep(&self) {
        let Some(own) = rayon::current_thread_index() else { return };
        for _ in self.looking.load(Ordering::Relaxed) + 1..rayon::current_num_threads() {
            self.looking.fetch_add(1, Ordering::Relaxed);
            let looking = Arc::clone(&self.looking);
            rayon::spawn(move || {
                // Who asked has work to do.
                if rayon::current_thread_index() != Some(own) {
                    look_for_work();
                }
                looking.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }
}

fn look_for_work() {
    let mut idle = Instant::now();
    while idle.elapsed() < PATIENCE {
        match rayon::yield_now() {
            Some(Yield::Executed) => idle = Instant::now(),
            Some(Yield::Idle) => std::hint::spin_loop(),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    /// Every other thread is asked once, works meanwhile, and is let go.
    #[test]
    fn others_look_for_work_and_stop() {
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let awake = Awake::default();
            for _ in 0..50 {
                let sum: u64 = pool.install(|| {
                    awake.keep();
                    awake.keep();
                    assert!(awake.looking.load(Ordering::Relaxed) < threads);
                    (0..1_000_u64).into_par_iter().sum()
                });
                assert_eq!(sum, 499_500);
            }
            let patient = Instant::now();
            while awake.looking.load(Ordering::Relaxed) > 0 {
                assert!(patient.elapsed() < Duration::from_secs(60), "somebody looks for ever");
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn outside_of_a_pool_nobody_is_asked() {
        let awake = Awake::default();
        awake.keep();
        assert_eq!(awake.looking.load(Ordering::Relaxed), 0);
    }
}
