//! The subnets that a class selects. Source: reference, section 1.3, and Karpenter's `pkg/providers/subnet`.

use std::collections::BTreeMap;

use super::super::api::network::Subnet;
use super::selection::{FilterNames, Question, Selectable, Term};
use crate::api::ec2_node_class::{EC2NodeClassSpec, SubnetSelectorTerm};

pub const FILTERS: FilterNames = FilterNames { id: "subnet-id", name: "tag:Name" };

impl Selectable for Subnet {
    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> Option<&str> {
        None
    }

    fn tags(&self) -> &BTreeMap<String, String> {
        &self.tags
    }
}

fn term(term: &SubnetSelectorTerm) -> Term<'_> {
    Term { id: term.id.as_deref(), name: None, tags: &term.tags }
}

pub fn terms(class: &EC2NodeClassSpec) -> impl Iterator<Item = Term<'_>> {
    class.subnet_selector_terms.iter().map(term)
}

pub fn question(class: &EC2NodeClassSpec) -> Question {
    Question::of(terms(class))
}

/// Those that any term selects, by id. By free addresses, as in the reference, the status would change each minute.
pub fn select(class: &EC2NodeClassSpec, all: &[Subnet]) -> Vec<Subnet> {
    let mut selected: Vec<Subnet> =
        all.iter().filter(|one| terms(class).any(|term| term.selects(*one))).cloned().collect();
    selected.sort_by(|one, other| one.id.cmp(&other.id));
    selected.dedup_by(|one, other| one.id == other.id);
    selected
}
