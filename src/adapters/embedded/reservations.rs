//! Capacity reservations: how many instances are left is first known from the status of node classes, and counted here from then on.
//! Whoever asks about a class is told; what its status says meanwhile is what somebody wrote there.

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
        let is_of = |it: &CapacityReservation| it.instance_type == instance_type && it.availability_zone == zone;
        let left = self.left_of(&id).filter(|left| *left > 0 && self.reservations(&id).all(is_of))?;
        self.reserved_left.insert(id.clone(), left - 1);
        Some(id)
    }

    /// An instance of the reservation has ended.
    pub(super) fn give_back_reserved(&mut self, id: &str) {
        if let Some(left) = self.left_of(id) {
            self.reserved_left.insert(id.to_owned(), left.saturating_add(1));
        }
    }

    /// Says of reservations how many instances are left now, as far as that was ever said of them.
    pub(super) fn count_reserved(&self, reservations: &mut [CapacityReservation]) {
        for reservation in reservations.iter_mut().filter(|it| it.available_instance_count.is_some()) {
            let left = self.reserved_left.get(&reservation.id).copied();
            reservation.available_instance_count = left.or(reservation.available_instance_count);
        }
    }

    /// Of classes that were looked at at different moments, the lower count is right.
    fn left_of(&self, id: &str) -> Option<i32> {
        let said = || self.reservations(id).filter_map(|it| it.available_instance_count).min();
        self.reserved_left.get(id).copied().or_else(said)
    }

    /// As each class lists it.
    fn reservations(&self, id: &str) -> impl Iterator<Item = &CapacityReservation> {
        let statuses = self.node_classes.values().filter_map(|class| class.status.as_ref());
        statuses.flat_map(|status| &status.capacity_reservations).filter(move |it| it.id == id)
    }
}
