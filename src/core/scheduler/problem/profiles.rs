//! Variants with the same requirements and tolerations, and what is left for them of each template and group of nodes.

use std::collections::HashMap;

use crate::model::Requirements;
use crate::scheduler::host::HostIndex;
use crate::scheduler::taints::repelling;

use super::Problem;
use super::fits::{named_slots, template_fit};

impl Problem<'_> {
    pub(super) fn compile_profiles(&mut self) {
        let mut profiles: HashMap<(&Requirements, String, bool, bool), usize> = HashMap::new();
        let group_count = self.nodes.iter().map(|node| node.group + 1).max().unwrap_or(0);
        let mut representative: Vec<HostIndex> = vec![HostIndex::default(); group_count];
        for (position, node) in self.nodes.enumerated() {
            representative[node.group] = position;
        }
        for variant in &self.variants {
            let tolerations =
                if variant.tolerations.is_empty() { String::new() } else { format!("{:?}", variant.tolerations) };
            let identity = (&variant.requirements, tolerations, variant.soft_taints_repel, variant.needs_existing);
            let next = profiles.len();
            let profile = *profiles.entry(identity).or_insert(next);
            self.profile_of_variant.push(profile);
            let of_pools = |key: &str| self.templates.iter().any(|template| template.chooses(key));
            self.names_pool_labels.push(variant.requirements.iter().any(|(key, _)| of_pools(key)));
            if profile == next {
                self.template_fit.push(self.templates.iter().map(|template| template_fit(variant, template)).collect());
                let named = |template| named_slots(&variant.requirements, template);
                self.named_slots.push(self.templates.iter().map(named).collect());
                let fits_node = |position: &HostIndex| {
                    let node = &self.nodes[*position];
                    repelling(&node.taints, &variant.tolerations, variant.soft_taints_repel).is_none()
                        && variant.requirements.allow_labels(&node.labels)
                };
                self.node_fit.push(representative.iter().map(fits_node).collect());
            }
        }
    }
}
