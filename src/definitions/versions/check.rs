//! A document against what the version that is installed knows. What no version knows the schema has said already, but where it is newer than all
//! of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::Value;

use super::table::{Fact, FactKind, Pointers, TABLE};
use super::{Installed, KarpenterVersion};
use crate::definitions::document::{Document, spans};
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::rules::{Rule, kubelet_types, versions as rules};
use crate::definitions::schema;

/// What is newer in the document than what is installed; of a document that was `old` before, also what may be changed only later.
pub fn check(kind: Kind, document: &Document, old: Option<&Value>, installed: Installed) -> Vec<Finding> {
    let name = format!("{}/{}", kind.api_version(), kind.name());
    let Some(pointers) = TABLE.kinds.get(name.as_str()) else { return Vec::new() };
    let mut checking = Checking { document, pointers, installed, findings: Vec::new() };
    if let Some(since) = checking.newer("/", |fact| fact.what == FactKind::Kind) {
        let message = format!("{} exists since Karpenter {since}, and {installed}", kind.name());
        let hint =
            "its API server does not serve the kind, and refuses the object: remove it, or upgrade Karpenter first";
        return vec![Finding::at(&rules::KIND, document, "/kind", FindingPlace::Value, message).hint(hint)];
    }
    checking.walk(&document.value, "", "");
    checking.findings.extend(unreleased(kind, document, Some(installed)));
    if let Some(old) = old {
        checking.transitions(old);
    }
    checking.findings
}

/// What the mappings of a kind are in which every version has certain fields, and our schema takes any: it is newer than they are.
static OPEN: LazyLock<BTreeMap<Kind, Vec<&'static str>>> = LazyLock::new(|| {
    let open = |kind: Kind| {
        let pointers = TABLE.kinds.get(format!("{}/{}", kind.api_version(), kind.name()).as_str());
        let fields =
            pointers.into_iter().flatten().filter(|(_, facts)| facts.iter().any(|it| it.what == FactKind::Field));
        let holders: BTreeSet<&str> = fields.map(|(pointer, _)| spans::parent(pointer)).collect();
        let is_open = |holder: &&str| {
            let schema = schema::at(kind, holder.split('/').skip(1));
            !holder.contains(['[', '{']) && schema.is_some_and(|schema| schema.get("properties").is_none())
        };
        (kind, holders.into_iter().filter(is_open).collect())
    };
    Kind::ALL.into_iter().map(open).collect()
});

/// Fields that no version has yet. Where somebody says which one is installed, it does not have them: that is an error.
pub fn unreleased(kind: Kind, document: &Document, installed: Option<Installed>) -> Vec<Finding> {
    let holders = OPEN.get(&kind).map(Vec::as_slice).unwrap_or_default();
    let Some(pointers) = TABLE.kinds.get(format!("{}/{}", kind.api_version(), kind.name()).as_str()) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (pointer, name, _) in holders.iter().flat_map(|holder| document.members(holder)) {
        // What the kubelet does not know either has a rule of its own.
        if pointers.contains_key(pointer.as_str()) || !kubelet_types::names().any(|known| known == name) {
            continue;
        }
        let newest = KarpenterVersion::newest();
        let message = format!("`{}` is in no release of Karpenter up to {newest}", spans::field_path(&pointer));
        let (rule, message) = match installed {
            Some(installed) => (&rules::FIELD, format!("{message}, and {installed}")),
            None => (&rules::UNRELEASED, message),
        };
        let hint = "kubectl and server-side apply are refused, and what comes by others loses the field: remove it, or set it by `userData`";
        findings.push(Finding::at(rule, document, &pointer, FindingPlace::Key, message).hint(hint));
    }
    findings
}

struct Checking<'c> {
    document: &'c Document,
    pointers: &'c Pointers,
    installed: Installed,
    findings: Vec<Finding>,
}

impl Checking<'_> {
    fn facts(&self, schema: &str) -> &[Fact] {
        self.pointers.get(schema).map(Vec::as_slice).unwrap_or_default()
    }

    /// Since when there is what is looked for, where that is later than what is installed.
    fn newer(&self, schema: &str, is_it: impl Fn(&Fact) -> bool) -> Option<KarpenterVersion> {
        let facts: Vec<&Fact> = self.facts(schema).iter().filter(|fact| is_it(fact)).collect();
        let is_known = facts.iter().any(|fact| fact.holds_in(self.installed.version));
        let later = facts.iter().map(|fact| fact.since()).filter(|since| *since > self.installed.version);
        if is_known { None } else { later.min() }
    }

    fn say(&mut self, rule: &'static Rule, pointer: &str, place: FindingPlace, what: &str, hint: &str) {
        let message = format!("{what}, and {}", self.installed);
        self.findings.push(Finding::at(rule, self.document, pointer, place, message).hint(hint));
    }

    /// `pointer` is that of the value, `schema` that of what the schema says of it.
    fn walk(&mut self, value: &Value, pointer: &str, schema: &str) {
        if let Some(since) = self.newer(schema, |fact| fact.what == FactKind::Field) {
            let what = format!("`{}` exists since Karpenter {since}", spans::field_path(pointer));
            let hint = "kubectl and server-side apply are refused, and what comes by others loses the field: remove it, or upgrade \
                        Karpenter first";
            return self.say(&rules::FIELD, pointer, FindingPlace::Key, &what, hint);
        }
        match value {
            Value::Object(map) => {
                for (key, inner) in map {
                    let at = spans::join(pointer, key);
                    self.key(key, &at, FindingPlace::Key, schema);
                    let named = format!("{schema}/{key}");
                    let of_any = format!("{schema}/{{}}");
                    let inner_schema = if self.pointers.contains_key(named.as_str()) { named } else { of_any };
                    self.walk(inner, &at, &inner_schema);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.walk(item, &format!("{pointer}/{index}"), &format!("{schema}/[]"));
                }
            }
            Value::String(text) => {
                self.word(text, pointer, schema);
                self.key(text, pointer, FindingPlace::Value, schema);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// A word of those that the field takes, in all of the text or before its `@`.
    fn word(&mut self, text: &str, pointer: &str, schema: &str) {
        let family = text.split('@').next().unwrap_or_default();
        for (what, word) in [(FactKind::Value, text), (FactKind::Family, family)] {
            let Some(since) = self.newer(schema, |fact| fact.what == what && fact.name == word) else { continue };
            let known =
                self.facts(schema).iter().filter(|fact| fact.what == what && fact.holds_in(self.installed.version));
            let known: Vec<&str> = known.map(|fact| fact.name).collect();
            let said = format!("`{}` may be `{word}` since Karpenter {since}", spans::field_path(pointer));
            let hint = format!(
                "the API server refuses the object: write one of {}, or upgrade Karpenter first",
                known.join(", ")
            );
            self.say(&rules::VALUE, pointer, FindingPlace::Value, &said, &hint);
        }
    }

    /// A key of a label, where only some keys of a domain may be used.
    fn key(&mut self, key: &str, pointer: &str, place: FindingPlace, schema: &str) {
        let facts = self.facts(schema);
        let Some(domain) = refused(facts, key, self.installed.version) else { return };
        let Some(since) = self.installed.version.and_later().find(|later| refused(facts, key, *later).is_none()) else {
            return;
        };
        let is_listed = facts.iter().any(|fact| fact.what == FactKind::Key && fact.name == key);
        let said = match is_listed {
            true => format!("the key `{key}` may be used since Karpenter {since}"),
            false => format!("`{key}`: keys of the domain {domain} may be used since Karpenter {since}"),
        };
        let hint = match is_listed {
            true => "the API server refuses the object: remove it, or upgrade Karpenter first",
            false => "the API server refuses the object: use a domain of your own, or upgrade Karpenter first",
        };
        self.say(&rules::VALUE, pointer, place, &said, hint);
    }

    /// What the installed version lets nobody change, and the newest does.
    fn transitions(&mut self, old: &Value) {
        let pointers = self.pointers;
        for (schema, fact) in pointers.iter().flat_map(|(schema, facts)| facts.iter().map(move |fact| (*schema, fact)))
        {
            if !fact.holds_in(self.installed.version) || fact.is_current() {
                continue;
            }
            let (before, now) = (old.pointer(schema), self.document.value.pointer(schema));
            let Some((before, now)) = before.zip(now) else { continue };
            let later = self.installed.version.and_later().find(|later| !fact.holds_in(*later));
            let Some(since) = later else { continue };
            let field = spans::field_path(schema);
            let hint =
                "the API server refuses the change: make a new object under another name, or upgrade Karpenter first";
            match fact.what {
                FactKind::Immutable if before != now => {
                    let said = format!("`{field}` can be changed since Karpenter {since}");
                    self.say(&rules::CHANGE, schema, FindingPlace::Value, &said, hint);
                }
                FactKind::Stays => {
                    let names: Vec<&str> = fact.name.split('|').collect();
                    let stays = |name: &&str| before.get(*name).is_some() && now.get(*name).is_some();
                    if !names.iter().any(stays) {
                        let there = names.iter().find(|name| now.get(**name).is_some());
                        let at = there.map_or_else(|| schema.to_owned(), |name| spans::join(schema, name));
                        let said =
                            format!("{} can take each other's place since Karpenter {since}", names.join(" and "));
                        self.say(&rules::CHANGE, &at, FindingPlace::Key, &said, hint);
                    }
                }
                _ => {}
            }
        }
    }
}

/// The domain that refuses the key in a version. As the rule has it, what a domain ends with decides.
fn refused(facts: &[Fact], key: &str, version: KarpenterVersion) -> Option<&'static str> {
    let domain_of_key = key.split('/').next().unwrap_or_default();
    let holding = |what: FactKind| facts.iter().filter(move |fact| fact.what == what && fact.holds_in(version));
    let is_refused = |domain: &&'static str| {
        let is_open = |fact: &Fact| fact.name.ends_with(*domain) && domain_of_key.ends_with(fact.name);
        domain_of_key.ends_with(*domain)
            && !holding(FactKind::Key).any(|fact| fact.name == key)
            && !holding(FactKind::Subdomain).any(is_open)
    };
    holding(FactKind::Domain).map(|fact| fact.name).find(is_refused)
}
