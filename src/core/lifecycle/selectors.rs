//! What of an EC2NodeClass is looked up in EC2: subnets, security groups, images, reservations. Its hash leaves them out, since
//! what they find may change while they stay as they are, and the other way round.

use serde::{Deserialize, Serialize};

use cutlist_api::ec2_node_class::{
    AmiSelectorTerm, CapacityReservationSelectorTerm, EC2NodeClassSpec, SecurityGroupSelectorTerm, SubnetSelectorTerm,
};
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;

/// The selector terms of a class, or those that an instance was launched with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Selectors {
    pub ami_selector_terms: Vec<AmiSelectorTerm>,
    pub security_group_selector_terms: Vec<SecurityGroupSelectorTerm>,
    pub subnet_selector_terms: Vec<SubnetSelectorTerm>,
    pub capacity_reservation_selector_terms: Vec<CapacityReservationSelectorTerm>,
}

impl Selectors {
    pub fn of(class: &EC2NodeClassSpec) -> Self {
        Self {
            ami_selector_terms: class.ami_selector_terms.clone(),
            security_group_selector_terms: class.security_group_selector_terms.clone(),
            subnet_selector_terms: class.subnet_selector_terms.clone(),
            capacity_reservation_selector_terms: class.capacity_reservation_selector_terms.clone(),
        }
    }

    /// As the annotation of a NodeClaim has them.
    pub fn to_text(&self) -> String {
        // Plain data always has a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What the claim's instance was launched with; `None` where nobody wrote that down, as Karpenter does not.
    pub fn launched_with(claim: &NodeClaim) -> Option<Self> {
        serde_json::from_str(claim.annotation(keys::LAUNCHED_SELECTORS)?).ok()
    }
}
