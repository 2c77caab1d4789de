//! What nodes that go give back to the limits of their pools. As in the reference alone: its scheduler counts just the nodes that it is given,
//! and those that go, or that it tries to do without, are not among them.

use crate::model::resources::NODES;
use crate::scheduler::HostIndex;
use crate::scheduler::quota::LimitScope;
use crate::scheduler::vectors;

use super::Engine;

impl Engine<'_, '_> {
    /// Tries something as if this node, which is to go, counted for nothing any more, and takes it back.
    pub fn while_giving_back<R>(&mut self, host: HostIndex, tries: impl FnOnce(&mut Self) -> R) -> R {
        let mark = self.mark();
        let gave_back = std::mem::replace(&mut self.gives_limits_back, true);
        // One that was withheld from the beginning is not closed once more.
        let is_withheld = self.is_closed(host);
        if is_withheld {
            self.give_back(host, 1);
        }
        let result = tries(self);
        self.revert(mark);
        if is_withheld {
            self.give_back(host, -1);
        }
        self.gives_limits_back = gave_back;
        result
    }

    /// Of a node that exists, and takes no pods any more. With `sign` -1 it does again.
    pub(super) fn give_back(&mut self, host: HostIndex, sign: i8) {
        let problem = self.problem;
        if !self.gives_limits_back || self.hosts[host].open.is_some() || problem.quotas.is_empty() {
            return;
        }
        let machine = &problem.machines[host];
        let pool = machine.node_pool().filter(|_| machine.is_managed());
        let Some(template) = pool.and_then(|pool| problem.templates.iter().find(|it| it.name == pool)) else { return };
        let mut capacity = machine.capacity();
        capacity.set(NODES, 1);
        let capacity = problem.limited.capacity(&capacity);
        for quota in template.quotas.iter().filter(|it| problem.quotas[**it].scope == LimitScope::NodePool) {
            vectors::add(&mut self.planned[*quota], &capacity, -i64::from(sign));
        }
    }
}
