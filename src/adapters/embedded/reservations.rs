//! Capacity reservations: the status of node classes says how many instances are left, and launching takes one.

use crate::api::ec2_node_class::CapacityReservation;
use crate::api::keys;
use crate::api::node_claim::NodeClaim;

use super::state::World;

impl World {
    /// Takes an instance of the reservation that a claim asks for; its id, or `None` when none is left.
    pub(super) fn take_reserved(&mut self, claim: &NodeClaim, instance_type: &str, zone: &str) -> Option<String> {
        let requirements = claim.spec.requirements.iter();
        let mut asked = requirements.filter(|it| it.key == keys::CAPACITY_RESERVATION_ID).flat_map(|it| &it.values);
        let id = asked.next()?.clone();
        let has_one = |it: &mut CapacityReservation| {
            it.instance_type == instance_type
                && it.availability_zone == zone
                && it.available_instance_count.is_some_and(|left| left > 0)
        };
        let of_each_class: Vec<bool> = self.reservations(&id).map(has_one).collect();
        if of_each_class.is_empty() || of_each_class.contains(&false) {
            return None;
        }
        self.count_reserved(&id, -1);
        Some(id)
    }

    /// An instance of the reservation has ended.
    pub(super) fn give_back_reserved(&mut self, id: &str) {
        self.count_reserved(id, 1);
    }

    fn count_reserved(&mut self, id: &str, change: i32) {
        for left in self.reservations(id).filter_map(|it| it.available_instance_count.as_mut()) {
            *left = left.saturating_add(change);
        }
    }

    /// As each class lists it.
    fn reservations(&mut self, id: &str) -> impl Iterator<Item = &mut CapacityReservation> {
        let statuses = self.node_classes.values_mut().filter_map(|class| class.status.as_mut());
        statuses.flat_map(|status| &mut status.capacity_reservations).filter(move |it| it.id == id)
    }
}
