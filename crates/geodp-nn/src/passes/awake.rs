//! Keeps the pool's other threads awake from one pass to the next.
//!
//! Between two passes stands what one thread does alone: an update, packing of weights. Rayon's threads fall
//! asleep meanwhile, after some ten microseconds, and waking one takes longer than a small step. So an exact sum
//! leaves each of them a task that looks for work. It ends after [`PATIENCE`] even if there is some: it may stand
//! on top of somebody's who waits for another thread, and must not keep them.

use rayon::Yield;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a thread looks for work: beyond that a step is so long that waking is lost in it.
const PATIENCE: Duration = Duration::from_micros(150);

/// How many threads are looking.
#[derive(Default)]
pub(crate) struct Awake {
    looking: Arc<AtomicUsize>,
}

impl Awake {
    /// Asks every other thread of this pool to stay awake, unless some still look; nothing outside of a pool.
    pub(crate) fn keep(&self) {
        let (own, others) = (rayon::current_thread_index(), rayon::current_num_threads() - 1);
        if own.is_none() || others == 0 || self.looking.load(Ordering::Relaxed) > 0 {
            return;
        }
        self.looking.fetch_add(others, Ordering::Relaxed);
        let looking = Arc::clone(&self.looking);
        rayon::spawn_broadcast(move |thread| {
            // Who asked has work to do.
            if Some(thread.index()) != own {
                look_for_work();
                looking.fetch_sub(1, Ordering::Relaxed);
            }
        });
    }
}

fn look_for_work() {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        match rayon::yield_now() {
            Some(Yield::Executed) => {}
            // As rayon's own threads do while they are awake.
            Some(Yield::Idle) => std::thread::yield_now(),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;
    use std::sync::atomic::AtomicBool;

    /// Nothing here takes a second unless it never ends.
    const LONG: Duration = Duration::from_secs(60);

    /// It is the others who look, each of them, and they stop by themselves.
    #[test]
    fn every_other_thread_looks_for_work_and_stops() {
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let awake = Awake::default();
            for _ in 0..50 {
                pool.install(|| {
                    awake.keep();
                    awake.keep();
                    assert!(awake.looking.load(Ordering::Relaxed) < threads);
                    // This thread does not run their tasks: it does nothing of the pool's.
                    let start = Instant::now();
                    while awake.looking.load(Ordering::Relaxed) > 0 {
                        assert!(
                            start.elapsed() < LONG,
                            "nobody looked, or somebody looks for ever"
                        );
                        std::thread::yield_now();
                    }
                    assert_eq!((0..1_000_u64).into_par_iter().sum::<u64>(), 499_500);
                });
            }
        }
    }

    /// However much work there is: whoever waits below has to be let go.
    #[test]
    fn looking_ends_while_there_is_work() {
        fn work_on(done: Arc<AtomicBool>, until: Instant) {
            if !done.load(Ordering::Relaxed) && Instant::now() < until {
                rayon::spawn(move || work_on(done, until));
            }
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let (done, start) = (Arc::new(AtomicBool::new(false)), Instant::now());
        pool.install(|| {
            let endless = Arc::clone(&done);
            rayon::spawn(move || work_on(endless, start + LONG));
            look_for_work();
            done.store(true, Ordering::Relaxed);
        });
        assert!(start.elapsed() < LONG, "it looked until there was nothing left");
    }

    #[test]
    fn outside_of_a_pool_nobody_is_asked() {
        let awake = Awake::default();
        awake.keep();
        assert_eq!(awake.looking.load(Ordering::Relaxed), 0);
    }
}
