//! The commits since the revision in force, held against the rules.
//!
//! A rule is about what differs between both revisions. Each commit in between that changed it must be signed by who may; what no commit in
//! between accounts for, as after history was rewritten, is the head's. So a change that nobody may make is undone by reverting it.

use std::collections::BTreeSet;

use crate::ports::Unsigned;
use crate::render::terminal::clean;

use super::policy::Rule;
use super::{Item, Policy};

/// Changes that a sentence names; the rest is counted.
const NAMED_MAX: usize = 3;
/// Of a title, a path, a name.
const CHARACTERS_MAX: usize = 200;

/// Who signed a commit, as far as that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signer {
    Nobody,
    /// Somebody who may sign; `shown` is for people.
    Known {
        names: Vec<String>,
        shown: String,
    },
    /// The signature does not count, and why.
    Refused(String),
}

#[derive(Clone, Debug)]
pub struct JudgedCommit {
    pub id: String,
    pub title: String,
    pub signer: Signer,
    /// What it changed by itself.
    pub items: BTreeSet<Item>,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'q> {
    pub policy: &'q Policy,
    pub branch: &'q str,
    /// Those before their children; the last is the head.
    pub commits: &'q [JudgedCommit],
    /// What differs between the revision in force and the head.
    pub differs: &'q BTreeSet<Item>,
}

/// Why the head may not be used; nothing: it may.
pub fn judge(question: Question<'_>) -> Vec<Unsigned> {
    let Question { policy, branch, commits, differs } = question;
    let Some(head) = commits.last() else { return Vec::new() };
    let mut refused = Vec::new();
    if !matches!(head.signer, Signer::Known { .. }) {
        refused.push(unsigned(head, None, &BTreeSet::new()));
    }
    for rule in policy.on(branch) {
        let asked: BTreeSet<&Item> = differs.iter().filter(|item| rule.is_about(item)).collect();
        let mut accounted = BTreeSet::new();
        for commit in commits {
            let own: BTreeSet<&Item> = asked.iter().copied().filter(|item| commit.items.contains(*item)).collect();
            if !own.is_empty() && !may(rule, &commit.signer) {
                refused.push(unsigned(commit, Some(rule), &own));
            }
            accounted.extend(own);
        }
        let rest: BTreeSet<&Item> = asked.difference(&accounted).copied().collect();
        if !rest.is_empty() && !may(rule, &head.signer) {
            refused.push(unsigned(head, Some(rule), &rest));
        }
    }
    refused
}

fn may(rule: &Rule, signer: &Signer) -> bool {
    matches!(signer, Signer::Known { names, .. } if rule.takes(names))
}

/// What others wrote, safe to show, and no longer than anybody reads.
fn shown(text: &str) -> String {
    let mut shown: String = clean(text).chars().take(CHARACTERS_MAX).collect();
    if text.chars().nth(CHARACTERS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

fn unsigned(commit: &JudgedCommit, rule: Option<&Rule>, items: &BTreeSet<&Item>) -> Unsigned {
    let further = items.len().saturating_sub(NAMED_MAX);
    let mut did: Vec<String> = items.iter().take(NAMED_MAX).map(|item| shown(&item.to_string())).collect();
    if further > 0 {
        did.push(format!("{further} more"));
    }
    Unsigned {
        commit: commit.id.clone(),
        title: shown(&commit.title),
        did: did.join(", "),
        rule: rule.map(|rule| shown(&rule.name)),
        signed: shown(&match &commit.signer {
            Signer::Nobody => "nobody signed it".to_owned(),
            Signer::Known { shown, .. } => format!("it is signed by {shown}"),
            Signer::Refused(why) => why.clone(),
        }),
        wanted: shown(&rule.map(|rule| rule.groups.join(" or ")).unwrap_or_default()),
    }
}
