//! NodeResourcesFit: requests against what is left of the node's allocatable.

use k8s_openapi::api::core::v1::Node;

use crate::model::Resources;
use crate::model::resources::format_amount;
use crate::snapshot::Pod;
use crate::snapshot::requests::effective_requests;

use super::context::{FilterContext, NodeState};
use super::objects::node_name;
use super::{Filter, FilterRefusal};

pub(super) struct Requests(Result<Resources, String>);

impl Requests {
    pub(super) fn of(pod: &Pod) -> Self {
        Self(effective_requests(pod).map_err(|error| error.to_string()))
    }

    pub(super) fn refusal(&self, node: &Node, context: &FilterContext<'_>) -> Option<FilterRefusal> {
        let refuse = |text: String| Some(FilterRefusal::new(Filter::NodeResourcesFit, text));
        let requests = match &self.0 {
            Ok(requests) => requests,
            Err(error) => return refuse(format!("the requests can not be read: {error}")),
        };
        let allocatable = match allocatable(node) {
            Ok(allocatable) => allocatable,
            Err(text) => return refuse(text),
        };
        let requested = context.nodes.get(node_name(node)).map(NodeState::requested);
        requests.iter().filter(|(_, amount)| *amount > 0).find_map(|(name, amount)| {
            let taken = requested.map_or(0, |requested| requested.get(name));
            let left = allocatable.get(name).saturating_sub(taken);
            let text =
                || format!("{name}: {} asked for, {} left", format_amount(name, amount), format_amount(name, left));
            (amount > left).then(|| FilterRefusal::new(Filter::NodeResourcesFit, text()))
        })
    }
}

/// What the node offers to pods; a resource that is not named is not there.
fn allocatable(node: &Node) -> Result<Resources, String> {
    let quantities = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    Resources::parse(quantities.into_iter().flatten().map(|(name, quantity)| (name.as_str(), &quantity.0)))
        .map_err(|(name, error)| format!("allocatable {name} of the node can not be read: {error}"))
}
