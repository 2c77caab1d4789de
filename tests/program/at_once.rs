//! Several runs of the program at the same time.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What there is to complain of in the text and in the JSON form of each case, for several cases at the same time.
pub fn complaints<T: Sync>(cases: &[T], of_case: impl Fn(&T) -> [Option<String>; 2] + Sync) -> Vec<String> {
    for_all(cases, of_case).into_iter().flatten().flatten().collect()
}

/// Does something for each item, for as many at the same time as there are processors. The results are in the order of the items.
pub fn for_all<T: Sync, R: Send>(items: &[T], action: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let work = || {
        loop {
            let position = next.fetch_add(1, Ordering::SeqCst);
            let Some(item) = items.get(position) else { return };
            let result = action(item);
            results.lock().unwrap().insert(position, result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    results.into_inner().unwrap().into_values().collect()
}
