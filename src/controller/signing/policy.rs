//! The operator's rules, checked: what can not be meant is an error, since a rule that nothing comes under protects nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::signing_policy::{API_VERSION, KIND, SigningAmount, SigningPolicyDocument, SigningRule};
use crate::definitions::patterns::{self, Patterns};

use super::Item;

/// Why a policy can not be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PolicyError {
    #[error("it is {api_version} {kind}, and not {API_VERSION} {KIND}")]
    OtherKind { api_version: String, kind: String },
    #[error("spec.rules is empty: without a rule leave the policy out, the head must be signed all the same")]
    NoRules,
    #[error("two rules are called `{0}`")]
    SameName(String),
    #[error("rule `{0}` is about nothing: give it paths, kinds or raises")]
    AboutNothing(String),
    #[error("rule `{0}` names no signers")]
    NoSigners(String),
    #[error("rule `{rule}` names the group `{group}`, and there is none of that name{}", or_else(known))]
    NoSuchGroup { rule: String, group: String, known: Vec<String> },
    #[error("group `{0}` has no members: nobody could sign for it")]
    EmptyGroup(String),
    #[error("`{pattern}` of rule `{rule}` is no pattern: {why}")]
    NoPattern { rule: String, pattern: String, why: String },
}

fn or_else(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!("; there is {}", known.join(", ")) }
}

/// Rules that can be asked.
#[derive(Debug, Default)]
pub struct Policy {
    pub(super) rules: Vec<Rule>,
}

#[derive(Debug)]
pub(super) struct Rule {
    pub name: String,
    paths: Patterns,
    kinds: BTreeSet<&'static str>,
    raises: BTreeSet<SigningAmount>,
    branches: Option<Patterns>,
    /// Groups, for sentences.
    pub groups: Vec<String>,
    signers: BTreeSet<String>,
}

impl Policy {
    pub fn of(document: &SigningPolicyDocument) -> Result<Self, PolicyError> {
        let SigningPolicyDocument { api_version, kind, metadata: _, spec } = document;
        if (api_version.as_str(), kind.as_str()) != (API_VERSION, KIND) {
            return Err(PolicyError::OtherKind { api_version: api_version.clone(), kind: kind.clone() });
        }
        if spec.rules.is_empty() {
            return Err(PolicyError::NoRules);
        }
        if let Some((group, _)) = spec.groups.iter().find(|(_, members)| members.is_empty()) {
            return Err(PolicyError::EmptyGroup(group.clone()));
        }
        let mut names = BTreeSet::new();
        if let Some(again) = spec.rules.iter().find(|rule| !names.insert(rule.name.as_str())) {
            return Err(PolicyError::SameName(again.name.clone()));
        }
        let rules = spec.rules.iter().map(|rule| Rule::of(rule, &spec.groups));
        Ok(Self { rules: rules.collect::<Result<_, _>>()? })
    }

    /// Whether definitions must be read to tell what comes under the rules for this branch.
    pub fn asks_for_definitions(&self, branch: &str) -> bool {
        self.on(branch).any(|rule| !rule.kinds.is_empty() || !rule.raises.is_empty())
    }

    pub(super) fn on<'p>(&'p self, branch: &'p str) -> impl Iterator<Item = &'p Rule> {
        self.rules.iter().filter(move |rule| rule.branches.as_ref().is_none_or(|branches| branches.has(branch)))
    }
}

impl Rule {
    fn of(rule: &SigningRule, groups: &BTreeMap<String, Vec<String>>) -> Result<Self, PolicyError> {
        let SigningRule { name, paths, kinds, raises, branches, signers } = rule;
        if paths.is_empty() && kinds.is_empty() && raises.is_empty() {
            return Err(PolicyError::AboutNothing(name.clone()));
        }
        if signers.is_empty() {
            return Err(PolicyError::NoSigners(name.clone()));
        }
        for pattern in paths.iter().chain(branches) {
            if let Some(why) = patterns::problem(pattern) {
                return Err(PolicyError::NoPattern { rule: name.clone(), pattern: pattern.clone(), why });
            }
        }
        let mut members = BTreeSet::new();
        for group in signers {
            let Some(of_group) = groups.get(group) else {
                let known = groups.keys().cloned().collect();
                return Err(PolicyError::NoSuchGroup { rule: name.clone(), group: group.clone(), known });
            };
            members.extend(of_group.iter().map(|member| member.to_lowercase()));
        }
        Ok(Self {
            name: name.clone(),
            paths: Patterns::new(paths),
            kinds: kinds.iter().map(|kind| kind.word()).collect(),
            raises: raises.iter().copied().collect(),
            branches: (!branches.is_empty()).then(|| Patterns::new(branches)),
            groups: signers.clone(),
            signers: members,
        })
    }

    pub fn is_about(&self, item: &Item) -> bool {
        match item {
            Item::Path(path) => self.paths.has(path),
            Item::Definition { kind, .. } => self.kinds.contains(kind),
            Item::Raised { amount, .. } => self.raises.contains(amount),
        }
    }

    /// Whether one of these names is of a member.
    pub fn takes(&self, names: &[String]) -> bool {
        names.iter().any(|name| self.signers.contains(&name.to_lowercase()))
    }
}
