//! Text with a variable that nobody gave a value: what is not judged because of it, and what the cluster knows of it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::diagnostic::Severity;
use super::document::{Document, spans};
use super::findings::{Finding, FindingPlace};
use super::kinds::Kind;
use super::revision::Revision;
use super::rules::{Check, ec2_node_class, kubelet, references, schema, versions};
use super::variables::{AsWritten, Variables};

/// A definition with variables that nobody gave a value.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenDefinition {
    pub kind: &'static str,
    pub name: String,
    /// As read: open texts stand as they were written.
    pub value: Value,
    /// Why no plan is made with the definition as it is written. `None` where one is made, or where the definition was
    /// not looked at beside a cluster.
    pub unplanned: Option<String>,
    pub file: String,
    pub line: usize,
    /// Pointers of open texts and of members with an open key.
    pub pointers: Vec<String>,
    /// The pointers of members with an open key alone.
    pub keys: BTreeSet<String>,
    /// The variables in these texts and keys.
    pub variables: BTreeSet<String>,
    /// Whether something is not judged, or can not be read, as long as the variables have no value.
    pub unchecked: bool,
    pub as_written: AsWritten,
}

impl OpenDefinition {
    /// The document, if it holds a variable that nobody gave a value.
    pub fn of(kind: Kind, document: &Document, file: &str, unchecked: bool) -> Option<Self> {
        let pointers: Vec<String> = document.variables.open_to_others().map(str::to_owned).collect();
        if pointers.is_empty() {
            return None;
        }
        let names = pointers.iter().filter_map(|pointer| document.variables.names().get(pointer));
        Some(Self {
            kind: kind.name(),
            name: document.str("/metadata/name").unwrap_or_default().to_owned(),
            value: document.value.clone().into_value(),
            unplanned: None,
            file: file.to_owned(),
            line: document.place("", FindingPlace::Value).line,
            variables: names.flatten().cloned().collect(),
            keys: pointers.iter().filter(|it| document.variables.is_open_key(it)).cloned().collect(),
            pointers,
            unchecked,
            as_written: document.variables.as_written().clone(),
        })
    }

    /// Variables that have a value in the object as it is applied, and none in what is to be written. Their names would
    /// take the place of the value.
    pub fn lost(&self, to_write: &Value, applied: &Value) -> BTreeSet<&str> {
        let has = |text: &str, name: &str| text.contains(&format!("${{{name}"));
        let texts = self.pointers.iter().filter(|pointer| !self.keys.contains(*pointer)).filter_map(|pointer| {
            let text = |value: &Value| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
            Some((text(to_write)?, text(applied)?))
        });
        let lost = texts.flat_map(|(written, there)| {
            let is_lost = move |name: &&String| has(&written, name) && !has(&there, name);
            self.variables.iter().filter(is_lost)
        });
        lost.map(String::as_str).collect()
    }

    /// Why the definition keeps the revision from taking force, for those who wait for that.
    pub fn why_unusable(&self) -> String {
        let names: Vec<&str> = self.variables.iter().map(String::as_str).collect();
        format!(
            "{} {} can not be used before these variables have values: {}\n",
            self.kind,
            self.name,
            names.join(", ")
        )
    }
}

/// Takes away findings about text that is not known yet. Gives whether an error was among them.
pub fn drop_hidden(document: &Document, findings: &mut Vec<Finding>) -> bool {
    let mut unchecked = false;
    findings.retain(|finding| {
        let hidden = hides(document, finding);
        unchecked |= hidden && finding.rule.severity == Severity::Error;
        !hidden
    });
    unchecked
}

/// Whether the finding is about text with an open variable, or may be an outcome of what such text will be.
fn hides(document: &Document, finding: &Finding) -> bool {
    let Some(pointer) = finding.pointer.as_deref().filter(|_| document.variables.open().next().is_some()) else {
        return false;
    };
    let variables = &document.variables;
    // The finding is about the variable itself, or about the YAML.
    if matches!(finding.rule.check, Check::Pass) && !finding.rule.is_of_schema() {
        return false;
    }
    // That a field does not exist, or is one too many, has nothing to do with its value.
    let of_names = [
        &schema::UNKNOWN_FIELD,
        &kubelet::FIELD,
        &versions::FIELD,
        &versions::UNRELEASED,
        &ec2_node_class::ROLE_OR_PROFILE,
    ];
    if of_names.iter().any(|rule| std::ptr::eq(finding.rule, *rule)) {
        return variables.is_open_key(pointer);
    }
    if variables.is_open(pointer) {
        return true;
    }
    if std::ptr::eq(finding.rule, &schema::MISSING_FIELD) {
        return variables.has_open_key(spans::parent(pointer));
    }
    match finding.rule.check {
        Check::Cel(expressions, _) => {
            let structural = expressions.iter().all(|expression| !reads_values(expression.rule));
            let entry = list_entry_of(pointer);
            !structural && (variables.is_open_within(pointer) || entry.is_some_and(|it| variables.is_open_within(it)))
        }
        Check::Document(..) if finding.rule.severity == Severity::Error => {
            let entry = entry_of(pointer);
            variables.is_open_within(entry) || has_open_sibling(document, variables, entry)
        }
        // Some rules of the schema have no name of their own.
        Check::Pass => std::ptr::eq(finding.rule, &schema::OTHER) && variables.is_open_within(pointer),
        _ => false,
    }
}

/// Whether a CEL rule looks at what fields say, and not only at which of them there are.
fn reads_values(rule: &str) -> bool {
    let mut rest = rule;
    let mut without_has = String::new();
    while let Some((before, after)) = rest.split_once("has(") {
        without_has.push_str(before);
        rest = after.split_once(')').map_or("", |(_, behind)| behind);
    }
    without_has.push_str(rest);
    ["self", "x.", "x in", "x["].iter().any(|reading| without_has.contains(reading))
}

/// The entry of a list that `pointer` is in, else what it is in.
fn entry_of(pointer: &str) -> &str {
    list_entry_of(pointer).unwrap_or_else(|| spans::parent(pointer))
}

/// The innermost mapping that is an entry of a list, and that `pointer` is in.
fn list_entry_of(pointer: &str) -> Option<&str> {
    let is_index = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut entry = pointer;
    while let Some((parent, last)) = entry.rsplit_once('/') {
        if is_index(last) {
            return Some(entry);
        }
        entry = parent;
    }
    None
}

/// Entries of a list that speak of the same key are judged together: requirements, taints.
fn has_open_sibling(document: &Document, variables: &Variables, entry: &str) -> bool {
    let Some(key) = document.str(&format!("{entry}/key")) else { return false };
    let mut siblings = document.items(spans::parent(entry));
    siblings.any(|(sibling, value)| {
        let other = value.get("key").and_then(Value::as_str);
        let same = other == Some(key) || variables.is_open(&format!("{sibling}/key"));
        same && variables.is_open_within(&sibling)
    })
}

/// Whether the finding of a rule over all documents may be an outcome of open text. A name with an open variable may be
/// any name.
pub fn hides_of(revision: &Revision<'_>, finding: &Finding) -> bool {
    let of_file = |object: &&super::revision::Object| {
        object.document.file == finding.file && object.document.name() == finding.object
    };
    let own = revision.objects.iter().find(of_file);
    if own.zip(finding.pointer.as_deref()).is_some_and(|(own, pointer)| own.document.variables.is_open(pointer)) {
        // Two objects with the same open name are one name, whatever it will be.
        return !std::ptr::eq(finding.rule, &references::DUPLICATE);
    }
    let has_open =
        |kind: Kind, pointer: &str| revision.of(kind).any(|object| object.document.variables.is_open_within(pointer));
    if std::ptr::eq(finding.rule, &references::CLASS_MISSING) {
        return has_open(Kind::EC2NodeClass, "/metadata/name");
    }
    if std::ptr::eq(finding.rule, &references::CLASS_UNUSED) {
        return has_open(Kind::NodePool, references::REFERENCE);
    }
    std::ptr::eq(finding.rule, &references::POOL_MISSING) && has_open(Kind::NodePool, "/metadata/name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_what_a_rule_looks_at() {
        assert!(!reads_values("has(self.role) || has(self.instanceProfile)"));
        assert!(!reads_values("(has(self.role) && !has(self.instanceProfile)) || (!has(self.role) && has(self.b))"));
        assert!(reads_values("self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)"));
        assert!(reads_values("!has(self.a) || self.a != 'b'"));
    }

    #[test]
    fn finds_the_entry_of_a_list() {
        assert_eq!(entry_of("/spec/requirements/3/values/0"), "/spec/requirements/3/values/0");
        assert_eq!(entry_of("/spec/requirements/3/key"), "/spec/requirements/3");
        assert_eq!(entry_of("/spec/limits"), "/spec");
    }
}
