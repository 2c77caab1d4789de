//! What an instance really has, as the cloud said, against what its class selects: its subnet and its security groups. What the cloud
//! did not say, and a selection that is not known or is empty, are no drift.

use std::collections::BTreeSet;

use crate::inputs::{Inputs, LiveInstance};
use crate::snapshot::nodes::Machine;
use cutlist_api::ec2_node_class::SecurityGroup;
use cutlist_api::settings::Packing;

/// What the cloud said of a machine.
pub fn of<'i>(inputs: &'i Inputs<'_>, machine: &Machine<'_>) -> Option<&'i LiveInstance> {
    let provider_id = machine.claim?.status.as_ref()?.provider_id.as_deref()?;
    inputs.policy.instances.get(provider_id)
}

/// The image that a machine runs, as the cloud or else its claim says.
pub fn image_of<'i>(inputs: &'i Inputs<'_>, machine: &Machine<'i>) -> Option<&'i str> {
    let of_claim = machine.claim?.status.as_ref().and_then(|status| status.image_id.as_deref());
    let of_instance = of(inputs, machine).and_then(|instance| instance.image_id.as_deref());
    of_instance.or(of_claim).filter(|image| !image.is_empty())
}

/// Security groups of a machine by those that its class selects.
pub struct Groups<'i> {
    /// Selected, and not attached.
    lacking: Vec<String>,
    /// Attached, and selected when the machine was launched, but not any more.
    deselected: Vec<&'i SecurityGroup>,
    /// Attached by somebody else.
    pub extra: Vec<&'i SecurityGroup>,
}

impl<'i> Groups<'i> {
    /// Those of a machine, by what its class selects now and selected when it was launched. `None` where one side is not known.
    pub fn of(
        selected: Option<&BTreeSet<String>>,
        before: Option<BTreeSet<String>>,
        inputs: &'i Inputs<'_>,
        machine: &Machine<'_>,
    ) -> Option<Self> {
        let attached = &of(inputs, machine)?.security_groups;
        if attached.is_empty() {
            return None;
        }
        let selected = selected?;
        let before = before.unwrap_or_default();
        let ids: BTreeSet<&str> = attached.iter().map(|group| group.id.as_str()).collect();
        let others = attached.iter().filter(|group| !selected.contains(&group.id));
        let (mut deselected, mut extra): (Vec<_>, Vec<_>) = others.partition(|group| before.contains(&group.id));
        deselected.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        extra.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        let lacking = selected.iter().filter(|id| !ids.contains(id.as_str())).cloned().collect();
        Some(Self { lacking, deselected, extra })
    }

    /// The reference takes any difference for drift.
    pub fn verdict(&self, class: &str, is_strict: bool) -> Result<(), String> {
        if !self.lacking.is_empty() {
            return Err(format!("EC2NodeClass {class} selects {}, which the node lacks", self.lacking.join(", ")));
        }
        let too_many = self.deselected.iter().chain(self.extra.iter().filter(|_| is_strict));
        let too_many: Vec<String> = too_many.map(|group| named(group)).collect();
        if too_many.is_empty() {
            return Ok(());
        }
        Err(format!("the node has {}, which EC2NodeClass {class} does not select", too_many.join(", ")))
    }
}

/// Whether groups that somebody attached beside the class's are drift.
pub fn is_strict(inputs: &Inputs<'_>) -> bool {
    inputs.policy.disruption.extra_security_groups_drift || inputs.policy.packing == Packing::Karpenter
}

/// `sg-9 (scanner)`
pub fn named(group: &SecurityGroup) -> String {
    group.name.as_ref().map_or_else(|| group.id.clone(), |name| format!("{} ({name})", group.id))
}

/// By the subnets that a class of this name selects now. `None` where one side is not known.
pub fn by_subnet(
    class: &str,
    selected: Option<&BTreeSet<String>>,
    inputs: &Inputs<'_>,
    machine: &Machine<'_>,
) -> Option<Result<(), String>> {
    let id = of(inputs, machine)?.subnet_id.as_deref()?;
    if selected?.contains(id) {
        return Some(Ok(()));
    }
    Some(Err(format!("EC2NodeClass {class} no longer selects {id}, which the node is in")))
}
