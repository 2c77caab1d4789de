//! One custom resource definition, taken apart into facts that can be compared between versions.

use std::fmt;

use cutlist::definitions::FactKind;
use serde_yaml::Value;

/// What a definition says, in one line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fact {
    /// `karpenter.sh/v1/NodePool`.
    pub kind: String,
    /// Into the schema: `[]` is an entry of a list, `{}` a member of a mapping.
    pointer: String,
    what: FactKind,
    name: String,
}

impl Fact {
    pub fn is_kind(&self) -> bool {
        self.what == FactKind::Kind
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = if self.pointer.is_empty() { "/" } else { &self.pointer };
        write!(formatter, "{} {pointer} {}", self.kind, self.what.word())?;
        if self.name.is_empty() { Ok(()) } else { write!(formatter, " {}", self.name) }
    }
}

/// The facts of the versions that are served, and the rules that can not be read.
pub fn facts(text: &str, others: &[&str]) -> (Vec<Fact>, Vec<String>) {
    let definition: Value = serde_yaml::from_str(text).unwrap();
    let (group, name) = (&definition["spec"]["group"], &definition["spec"]["names"]["kind"]);
    let (group, name) = (group.as_str().unwrap(), name.as_str().unwrap());
    let mut reading = Reading::default();
    if others.contains(&name) {
        return (Vec::new(), Vec::new());
    }
    for version in definition["spec"]["versions"].as_sequence().unwrap() {
        if version["served"] == Value::Bool(true) {
            reading.kind = format!("{group}/{}/{name}", version["name"].as_str().unwrap());
            reading.fact("", FactKind::Kind, "");
            reading.schema("", &version["schema"]["openAPIV3Schema"]);
        }
    }
    (reading.facts, reading.unread)
}

#[derive(Default)]
struct Reading {
    kind: String,
    facts: Vec<Fact>,
    unread: Vec<String>,
}

impl Reading {
    fn fact(&mut self, pointer: &str, what: FactKind, name: impl Into<String>) {
        let (kind, pointer) = (self.kind.clone(), pointer.to_owned());
        self.facts.push(Fact { kind, pointer, what, name: name.into() });
    }

    fn schema(&mut self, pointer: &str, schema: &Value) {
        for word in schema["enum"].as_sequence().into_iter().flatten().filter_map(Value::as_str) {
            self.fact(pointer, FactKind::Value, word);
        }
        for rule in schema["x-kubernetes-validations"].as_sequence().into_iter().flatten() {
            // As one line, whatever it was written as.
            let rule = rule["rule"].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
            if !self.rule(pointer, &rule) {
                self.unread.push(format!("{} {pointer} {rule}", self.kind));
            }
        }
        for (name, member) in schema["properties"].as_mapping().into_iter().flatten() {
            let name = name.as_str().unwrap();
            // The status is the controller's, and every object has the others.
            if pointer.is_empty() && ["status", "apiVersion", "kind", "metadata"].contains(&name) {
                continue;
            }
            let pointer = format!("{pointer}/{name}");
            self.fact(&pointer, FactKind::Field, "");
            self.schema(&pointer, member);
        }
        if schema["items"].is_mapping() {
            self.schema(&format!("{pointer}/[]"), &schema["items"]);
        }
        if schema["additionalProperties"].is_mapping() {
            self.schema(&format!("{pointer}/{{}}"), &schema["additionalProperties"]);
        }
    }

    /// Whether the rule is of a form that says something about names.
    fn rule(&mut self, pointer: &str, rule: &str) -> bool {
        self.domain(pointer, rule)
            || self.families(pointer, rule)
            || self.immutable(pointer, rule)
            || self.stays(pointer, rule)
    }

    /// `x in [...] || x.find(...).endsWith("open.to.all") || !x.find(...).endsWith("closed")`, of a text or of all keys of a mapping.
    fn domain(&mut self, pointer: &str, rule: &str) -> bool {
        let of_all = rule.strip_prefix("self.all(x, ").and_then(|rest| rest.strip_suffix(')'));
        let subject = if of_all.is_some() { "x" } else { "self" };
        let mut found = Vec::new();
        for part in of_all.unwrap_or(rule).split(" || ") {
            let ending = |part: &str| {
                let domain = part.strip_prefix(subject)?.strip_prefix(".find(\"^([^/]+)\").endsWith(\"")?;
                domain.strip_suffix("\")").map(str::to_owned)
            };
            let listed = part.strip_prefix(subject).and_then(|rest| list(rest.strip_prefix(" in ")?));
            match (listed, part.strip_prefix('!').map_or_else(|| ending(part), ending)) {
                (Some(names), _) => found.extend(names.into_iter().map(|name| (FactKind::Key, name))),
                (None, Some(domain)) if part.starts_with('!') => found.push((FactKind::Domain, domain)),
                (None, Some(domain)) => found.push((FactKind::Subdomain, domain)),
                (None, None) => return false,
            }
        }
        found.into_iter().for_each(|(what, name)| self.fact(pointer, what, name));
        true
    }

    /// `self.split('@')[0] in [...]`
    fn families(&mut self, pointer: &str, rule: &str) -> bool {
        let names = rule.strip_prefix("self.split('@')[0] in ").and_then(list);
        let is_read = names.is_some();
        names.into_iter().flatten().for_each(|name| self.fact(pointer, FactKind::Family, name));
        is_read
    }

    /// `self == oldSelf`, `self.group == oldSelf.group`
    fn immutable(&mut self, pointer: &str, rule: &str) -> bool {
        let Some((one, other)) = rule.split_once(" == ") else { return false };
        let member = one.strip_prefix("self").filter(|member| other.strip_prefix("oldSelf") == Some(*member));
        let is_name = |member: &str| member.chars().all(|letter| letter.is_ascii_alphanumeric());
        let member = match member.map(|member| member.strip_prefix('.').unwrap_or(member)) {
            Some(member) if is_name(member) => member,
            _ => return false,
        };
        let pointer = if member.is_empty() { pointer.to_owned() } else { format!("{pointer}/{member}") };
        self.fact(&pointer, FactKind::Immutable, "");
        true
    }

    /// `(has(oldSelf.a) && has(self.a)) || (has(oldSelf.b) && has(self.b))`
    fn stays(&mut self, pointer: &str, rule: &str) -> bool {
        let one = |part: &str| {
            let (old, new) = part.strip_prefix("(has(oldSelf.")?.strip_suffix("))")?.split_once(") && has(self.")?;
            (old == new).then(|| new.to_owned())
        };
        let names: Option<Vec<String>> = rule.split(" || ").map(one).collect();
        let is_read = names.is_some();
        names.into_iter().for_each(|names| self.fact(pointer, FactKind::Stays, names.join("|")));
        is_read
    }
}

/// A list of texts in either sort of quotes.
fn list(text: &str) -> Option<Vec<String>> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let unquoted = |word: &str| {
        let word = word.trim();
        let quote = word.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
        word.strip_prefix(quote)?.strip_suffix(quote).map(str::to_owned)
    };
    inner.split(',').map(unquoted).collect()
}
