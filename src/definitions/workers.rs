//! Who does work that falls into parts which have nothing to do with each other. In here nothing runs at once; who reads may lend several
//! workers, and what comes out is the same.

use std::fmt::Debug;
use std::sync::OnceLock;

pub trait Workers: Debug + Sync {
    /// Does each part once, in any order, and returns when all are done.
    fn each(&self, parts: usize, part: &(dyn Fn(usize) + Sync));
}

/// What each part gives, in the order of the parts. Without workers one is done after the other.
pub fn map<R: Send + Sync>(workers: Option<&dyn Workers>, parts: usize, part: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let Some(workers) = workers else { return (0..parts).map(part).collect() };
    let done: Vec<OnceLock<R>> = (0..parts).map(|_| OnceLock::new()).collect();
    workers.each(parts, &|number| {
        if let Some(cell) = done.get(number) {
            cell.get_or_init(|| part(number));
        }
    });
    done.into_iter().enumerate().map(|(number, cell)| cell.into_inner().unwrap_or_else(|| part(number))).collect()
}
