//! The order in which the reference tries the nodes that it has opened: fewest pods first, and of equals as its sort leaves
//! them. It sorts again before each pod and keeps the result, so how it got there decides between equals.
//!
//! Nodes with equally many pods stand in one queue. In a long list the sort nearly always shifts one node only: one that takes
//! a pod comes to the front of the next queue, and one that is opened to the end of that of one pod.

use std::collections::VecDeque;

use crate::model::IndexVec;
use crate::scheduler::{Engine, HostIndex};

use super::reference_sort::{Entry, shifts, sort};

/// In shorter ones gaps do not matter.
const LONG_QUEUE: usize = 32;

#[derive(Debug, Default)]
pub struct OpenOrder {
    /// By number of pods.
    queues: Vec<Queue>,
    /// By host; of those that are not open it says nothing.
    places: IndexVec<HostIndex, OpenRank>,
    count: usize,
}

/// Nodes with equally many pods.
#[derive(Debug, Default)]
struct Queue {
    /// Where a node has left, there is a gap until it comes to be at an end.
    hosts: VecDeque<Option<HostIndex>>,
    /// The number of the first; one that comes to the front gets the number before it.
    first: i64,
    count: usize,
}

/// Where a node is: the lesser comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenRank {
    pods: usize,
    number: i64,
}

impl OpenOrder {
    /// Nodes that are open already come in the order in which they were opened.
    pub fn new(engine: &Engine<'_, '_>) -> Self {
        Self::of(engine.open_hosts().map(|host| (engine.host(host).pod_count, host)).collect())
    }

    fn of(entries: Vec<Entry>) -> Self {
        let mut order = Self::default();
        order.sort(entries);
        order
    }

    /// The nodes in this order.
    pub fn hosts(&self) -> impl Iterator<Item = HostIndex> {
        self.queues.iter().flat_map(|queue| queue.hosts.iter().copied().flatten())
    }

    /// Only of nodes that are open.
    pub fn place(&self, host: HostIndex) -> OpenRank {
        self.places[host]
    }

    /// One more pod is on an open node. O(those of its queue before it), for a short list or rarely O(open nodes x log of them).
    pub fn placed(&mut self, host: HostIndex) {
        let OpenRank { pods, number } = self.places[host];
        let queue = &self.queues[pods];
        let in_queue = queue.position(number);
        let is_last = in_queue + 1 == queue.hosts.len();
        let position = self.count_below(pods) + queue.hosts.iter().take(in_queue).flatten().count();
        if is_last || shifts(self.count, position) {
            self.queues[pods].leave(number);
            self.close_gaps(pods);
            self.queue(pods + 1).come_first(host);
            self.places[host] = OpenRank { pods: pods + 1, number: self.queues[pods + 1].first };
        } else {
            let mut entries = self.entries();
            entries[position].0 += 1;
            self.sort(entries);
        }
    }

    /// A node was opened for one pod. O(1), for a short list O(open nodes).
    pub fn opened(&mut self, host: HostIndex) {
        let has_fuller = self.count > self.count_below(2);
        if has_fuller && !shifts(self.count + 1, self.count) {
            let mut entries = self.entries();
            entries.push((1, host));
            self.sort(entries);
        } else {
            self.append(1, host);
        }
    }

    /// What is in order stays as it is.
    fn sort(&mut self, mut entries: Vec<Entry>) {
        sort(&mut entries);
        self.queues.iter_mut().for_each(Queue::clear);
        self.count = 0;
        entries.into_iter().for_each(|(pods, host)| self.append(pods, host));
    }

    fn append(&mut self, pods: usize, host: HostIndex) {
        let number = self.queue(pods).come_last(host);
        *self.places.at_or(host, OpenRank::default()) = OpenRank { pods, number };
        self.count += 1;
    }

    fn queue(&mut self, pods: usize) -> &mut Queue {
        if pods >= self.queues.len() {
            self.queues.resize_with(pods + 1, Queue::default);
        }
        &mut self.queues[pods]
    }

    /// Where most of a queue is gaps. O(1) for each of them.
    fn close_gaps(&mut self, pods: usize) {
        let queue = &mut self.queues[pods];
        if queue.hosts.len() < LONG_QUEUE || queue.hosts.len() < 2 * queue.count {
            return;
        }
        queue.hosts.retain(Option::is_some);
        for (number, host) in (queue.first..).zip(queue.hosts.iter().flatten()) {
            self.places[*host].number = number;
        }
    }

    /// Nodes with fewer pods.
    fn count_below(&self, pods: usize) -> usize {
        self.queues.iter().take(pods).map(|queue| queue.count).sum()
    }

    fn entries(&self) -> Vec<Entry> {
        let queues = self.queues.iter().enumerate();
        queues.flat_map(|(pods, queue)| queue.hosts.iter().flatten().map(move |host| (pods, *host))).collect()
    }
}

impl Queue {
    fn position(&self, number: i64) -> usize {
        usize::try_from(number - self.first).unwrap_or(0)
    }

    fn come_first(&mut self, host: HostIndex) {
        self.hosts.push_front(Some(host));
        self.first -= 1;
        self.count += 1;
    }

    /// The number it got.
    fn come_last(&mut self, host: HostIndex) -> i64 {
        self.hosts.push_back(Some(host));
        self.count += 1;
        self.first + i64::try_from(self.hosts.len()).unwrap_or(i64::MAX) - 1
    }

    fn leave(&mut self, number: i64) {
        let position = self.position(number);
        self.hosts[position] = None;
        self.count -= 1;
        while self.hosts.front().is_some_and(Option::is_none) {
            self.hosts.pop_front();
            self.first += 1;
        }
        while self.hosts.back().is_some_and(Option::is_none) {
            self.hosts.pop_back();
        }
    }

    fn clear(&mut self) {
        self.hosts.clear();
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the reference does: sort everything each time.
    #[test]
    fn the_same_order_as_sorting_before_each_pod() {
        for (most, chances) in [(30, 3), (90, 3), (90, 40), (400, 2), (400, 300)] {
            let mut entries: Vec<Entry> = Vec::new();
            let mut order = OpenOrder::of(Vec::new());
            let mut random = most as u64;
            for round in 0..4000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let drawn = usize::try_from(random >> 33).unwrap();
                if entries.len() < most && (entries.is_empty() || drawn.is_multiple_of(3)) {
                    order.opened(entries.len().into());
                    entries.push((1, entries.len().into()));
                } else {
                    let position = drawn / 3 % chances.min(entries.len());
                    entries[position].0 += 1;
                    order.placed(entries[position].1);
                }
                sort(&mut entries);
                assert_eq!(order.entries(), entries, "at most {most}, round {round}");
                assert!(order.hosts().is_sorted_by_key(|host| order.place(host)));
            }
        }
    }
}
