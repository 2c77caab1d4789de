//! The security groups that a class selects. Source: reference, section 1.3, and Karpenter's `pkg/providers/securitygroup`.

use std::collections::BTreeMap;

use super::super::api::network::SecurityGroup;
use super::selection::{FilterNames, Question, Selectable, Term};
use crate::api::ec2_node_class::{EC2NodeClassSpec, SecurityGroupSelectorTerm};

pub const FILTERS: FilterNames = FilterNames { id: "group-id", name: "group-name" };

impl Selectable for SecurityGroup {
    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn tags(&self) -> &BTreeMap<String, String> {
        &self.tags
    }
}

fn term(term: &SecurityGroupSelectorTerm) -> Term<'_> {
    Term { id: term.id.as_deref(), name: term.name.as_deref(), tags: &term.tags }
}

pub fn terms(class: &EC2NodeClassSpec) -> impl Iterator<Item = Term<'_>> {
    class.security_group_selector_terms.iter().map(term)
}

pub fn question(class: &EC2NodeClassSpec) -> Question {
    Question::of(terms(class))
}

/// Those that any term selects, by id.
pub fn select(class: &EC2NodeClassSpec, all: &[SecurityGroup]) -> Vec<SecurityGroup> {
    let selected = all.iter().filter(|one| terms(class).any(|term| term.selects(*one)));
    let mut selected: Vec<SecurityGroup> = selected.cloned().collect();
    selected.sort_by(|one, other| one.id.cmp(&other.id));
    selected.dedup_by(|one, other| one.id == other.id);
    selected
}
