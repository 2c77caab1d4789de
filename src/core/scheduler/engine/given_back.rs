//! What nodes that go give back to limits. To those of their pools always in the reference: its scheduler counts just the nodes that it is
//! given, and those that go, or that it tries to do without, are not among them. Otherwise only to find out whether a node is in its own way.

use crate::model::resources::NODES;
use crate::scheduler::HostIndex;
use crate::scheduler::quota::LimitScope;
use crate::scheduler::vectors;

use super::Engine;

/// Which limits no longer count nodes that go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GivesBack {
    /// Those of their NodePools.
    pub of_pool: bool,
    /// Those of `cutlist.yaml`.
    pub of_cluster: bool,
}

impl GivesBack {
    /// All that give something back, those that leave most as it is first.
    pub const SOME: [Self; 3] = [
        Self { of_pool: true, of_cluster: false },
        Self { of_pool: false, of_cluster: true },
        Self { of_pool: true, of_cluster: true },
    ];

    fn and(self, other: Self) -> Self {
        Self { of_pool: self.of_pool || other.of_pool, of_cluster: self.of_cluster || other.of_cluster }
    }

    fn applies_to(self, scope: &LimitScope) -> bool {
        match scope {
            LimitScope::NodePool => self.of_pool,
            LimitScope::Cluster => self.of_cluster,
            // EC2 says what is left of a reservation, and a node that has joined is not on its way.
            LimitScope::Reservation(_) | LimitScope::EarlyEnds(_) => false,
        }
    }
}

impl Engine<'_, '_> {
    /// Tries something as if this node, which is to go, counted for nothing any more in these limits, and takes it back.
    pub fn while_giving_back<R>(
        &mut self,
        host: HostIndex,
        limits: GivesBack,
        tries: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let mark = self.mark();
        let gave_back = self.gives_back;
        self.gives_back = gave_back.and(limits);
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
        self.gives_back = gave_back;
        result
    }

    /// Of a node that exists, and takes no pods any more. With `sign` -1 it does again.
    pub(super) fn give_back(&mut self, host: HostIndex, sign: i8) {
        let problem = self.problem;
        let gives_back = self.gives_back;
        if gives_back == GivesBack::default() || self.hosts[host].open.is_some() || problem.quotas.is_empty() {
            return;
        }
        let machine = &problem.machines[host];
        let pool = machine.node_pool().filter(|_| machine.is_managed());
        let Some(template) = pool.and_then(|pool| problem.templates.iter().find(|it| it.name == pool)) else { return };
        let mut capacity = machine.capacity();
        capacity.set(NODES, 1);
        let capacity = problem.limited.capacity(&capacity);
        for quota in template.quotas.iter().filter(|it| gives_back.applies_to(&problem.quotas[**it].scope)) {
            vectors::add(&mut self.planned[*quota], &capacity, -i64::from(sign));
        }
    }
}
