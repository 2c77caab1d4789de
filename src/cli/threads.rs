//! Threads for work that falls into parts.
#![expect(clippy::disallowed_methods, reason = "this is who lends threads to what must not start any")]

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::definitions::Workers;

/// As many as the machine runs at once.
#[derive(Debug)]
pub struct Threads;

/// Beyond it threads wait for memory more than they work.
const THREADS_MAX: usize = 8;
/// A thread takes so many parts at once: asking for each would cost as much as a small one.
const PARTS: usize = 16;
/// As the first thread has on most systems: what is nested deep needs it.
const STACK_BYTES: usize = 8 << 20;

impl Workers for Threads {
    fn each(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = cores.min(THREADS_MAX).min(parts.div_ceil(PARTS));
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let first = next.fetch_add(PARTS, Ordering::Relaxed);
                if first >= parts {
                    return;
                }
                (first..parts.min(first + PARTS)).for_each(part);
            }
        };
        thread::scope(|scope| {
            for _ in 1..threads {
                let spawned = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
                // Where there is no room for another thread, those that are there do it all.
                if spawned.is_err() {
                    break;
                }
            }
            work();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_done_once() {
        for parts in [0, 1, 15, 16, 17, 1000] {
            let done: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
            Threads.each(parts, &|part| {
                done[part].fetch_add(1, Ordering::Relaxed);
            });
            assert!(done.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{parts}");
        }
    }
}
