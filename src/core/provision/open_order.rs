//! The order in which the reference tries the nodes that it has opened: fewest pods first, and of equals as its sort leaves
//! them. It sorts again before each pod and keeps the result, so how it got there decides between equals.

use crate::core::scheduler::{Engine, HostIndex};

use super::reference_sort::{Entry, sort, sort_but_one};

#[derive(Debug, Default)]
pub struct OpenOrder {
    entries: Vec<Entry>,
    /// By host, where it is among the entries; nodes that exist are not.
    rank: Vec<usize>,
}

impl OpenOrder {
    /// Nodes that are open already come in the order in which they were opened.
    pub fn new(engine: &Engine<'_, '_>) -> Self {
        let mut order = Self::default();
        for host in engine.open_hosts() {
            order.entries.push((engine.host(host).pod_count, host));
        }
        order.sort();
        order
    }

    /// By host. Only of nodes that are open.
    pub fn rank(&self) -> &[usize] {
        &self.rank
    }

    /// One more pod is on an open node. O(1) and those that it comes to stand behind, for a short list or rarely O(open nodes).
    pub fn placed(&mut self, host: HostIndex) {
        let Some(position) = self.rank.get(host).copied() else { return };
        let Some(entry) = self.entries.get_mut(position) else { return };
        entry.0 += 1;
        let pods = entry.0;
        if self.entries.get(position + 1).is_some_and(|next| next.0 < pods) {
            self.sort_but(position);
        }
    }

    /// A node was opened for one pod.
    pub fn opened(&mut self, host: HostIndex) {
        let position = self.entries.len();
        self.entries.push((1, host));
        if position > 0 && self.entries[position - 1].0 > 1 {
            self.sort_but(position);
        } else {
            self.set_rank(position);
        }
    }

    /// Where all others are in order.
    fn sort_but(&mut self, position: usize) {
        sort_but_one(&mut self.entries, position).for_each(|position| self.set_rank(position));
    }

    /// What is in order stays as it is.
    fn sort(&mut self) {
        sort(&mut self.entries);
        (0..self.entries.len()).for_each(|position| self.set_rank(position));
    }

    fn set_rank(&mut self, position: usize) {
        let host = self.entries[position].1;
        if host >= self.rank.len() {
            self.rank.resize(host + 1, usize::MAX);
        }
        self.rank[host] = position;
    }
}
