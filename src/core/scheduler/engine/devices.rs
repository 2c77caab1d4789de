//! Devices given to pods while a plan is made.

use super::Engine;
use crate::devices::allocate;
use crate::scheduler::class::ClassIndex;
use crate::scheduler::devices::taken;
use crate::scheduler::host::HostIndex;

impl Engine<'_, '_> {
    /// Whether a node that exists has devices for one more pod of the class. O(1) for classes without claims.
    pub(super) fn devices_fit(&self, class: ClassIndex, host: HostIndex) -> bool {
        self.problem.classes[class].devices.is_none() || self.devices_for(class, host).is_some()
    }

    /// Gives devices to one more pod of the class, or takes those of one back; the last of a class gets back what the last
    /// one got, so that going back is exact.
    pub(super) fn change_devices(&mut self, class: ClassIndex, host: HostIndex, sign: i8) {
        if sign > 0 {
            let given = self.devices_for(class, host).unwrap_or_default();
            self.hosts[host].devices.push((class, given));
        } else if let Some(last) = self.hosts[host].devices.iter().rposition(|(of, _)| *of == class) {
            self.hosts[host].devices.remove(last);
        }
    }

    fn devices_for(&self, class: ClassIndex, host: HostIndex) -> Option<Vec<usize>> {
        let devices = self.problem.classes[class].devices.as_deref()?;
        let choices = devices.on_host.get(&host)?;
        allocate(&devices.demand, self.problem.devices.get(host)?, choices, &taken(&self.hosts[host].devices))
    }
}
