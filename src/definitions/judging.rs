//! One document of a kind that is read, judged without the others.

use std::sync::Arc;

use serde_json::{Value, json};

use super::amounts;
use super::asked::Asked;
use super::context::Context;
use super::diagnostic::Severity;
use super::document::{self, Document};
use super::findings::{Finding, FindingPlace};
use super::fixes::Instead;
use super::kinds::Kind;
use super::open;
use super::rules::{self, Check, reading};
use super::schema;
use super::substitution::{self, Miss, Values};
use super::unread;
use super::versions;
use crate::api::ec2_node_class::Subnet;
use crate::api::source::{SourceFile, Standing};

/// At most this many clusters with values of their own are judged for one document. A mistake is seldom one for a
/// single cluster among many.
const CLUSTERS_MAX: usize = 20;

/// What the document is with its variables, and what was found in it.
#[derive(Clone, Debug)]
pub struct Judged {
    pub document: Document,
    pub asked: Arc<Asked>,
    pub findings: Vec<Finding>,
    pub misses: Vec<Miss>,
    /// Whether there is an error is not known, as it depends on a variable without a value.
    pub unchecked: bool,
    /// The document was not looked at entry by entry.
    pub is_too_long: bool,
}

impl Judged {
    /// `source` is the file that the document is in. `place` is the path of the kustomization that built it, or else of
    /// the file. `old` finds what the document was before, from what it is with its variables.
    pub fn of<'o>(
        kind: Kind,
        document: Document,
        (source, place): (&SourceFile, &str),
        context: &Context,
        old: impl FnOnce(&Value) -> Option<&'o Value>,
    ) -> Self {
        let mut clusters = context.values_of_clusters(place).peekable();
        let written = clusters.peek().is_some().then(|| document.clone());
        let mut judged = Self::with(kind, document, (source, context.values_at(place)), context, old);
        let Some(written) = written.filter(|_| judged.document.variables.open_to_others().next().is_some()) else {
            return judged;
        };
        for (cluster, values) in clusters.take(CLUSTERS_MAX) {
            let own = Self::with(kind, written.clone(), (source, values), context, |_| None);
            let is_known = |new: &Finding| {
                let place = |it: &Finding| (it.rule.code, it.file, it.span.start_byte);
                judged.findings.iter().any(|it| place(it) == place(new))
            };
            let new: Vec<Finding> = own.findings.into_iter().filter(|it| !is_known(it)).collect();
            judged.findings.extend(new.into_iter().map(|mut finding| {
                finding.message.push_str(&format!("; so Kustomization {cluster} sets it"));
                finding
            }));
        }
        judged
    }

    /// Judges the document with these values for variables.
    fn with<'o>(
        kind: Kind,
        mut document: Document,
        (source, values): (&SourceFile, Values<'_>),
        context: &Context,
        old: impl FnOnce(&Value) -> Option<&'o Value>,
    ) -> Self {
        let mut misses = Vec::new();
        // Variables were already replaced in what a cluster has. What looks like a variable is meant as it stands
        // there.
        if kind.is_object() && source.standing != Standing::Applied {
            misses = substitution::apply(kind, &mut document, values);
        }
        let mut findings = ambiguous(kind, &document);
        let old = old(&document.value);
        let mut unchecked = false;
        let subnets = subnets_found(kind, &document.value);
        if kind.is_object() {
            findings.extend(unread::set_by_cluster(&document));
        }
        findings.extend(schema::check(kind, &mut document, old, &mut unchecked));
        findings.extend(match context.karpenter {
            Some(installed) => versions::check(kind, &document, old, installed),
            None => versions::unreleased(kind, &document, None),
        });
        findings.extend(amounts::too_much_of(kind, &document));
        // A document that is far too long is not looked at entry by entry.
        let is_too_long = amounts::is_far_too_long(kind, &document);
        let asked = if is_too_long { Asked::default() } else { Asked::of(kind, &document) };
        if !is_too_long {
            findings.extend(rules::requirements::check(kind, &document, &asked));
        }
        for rule in rules::all().iter().filter(|_| !is_too_long) {
            if let Check::Document(kinds, check) = rule.check
                && kinds.contains(&kind)
            {
                findings.extend(check(&document));
            }
        }
        unchecked |= open::drop_hidden(&document, &mut findings);
        if let Some(status) = subnets
            && let Some(root) = document.value.as_object_mut()
        {
            root.insert("status".to_owned(), status);
        }
        Self { document, asked: Arc::new(asked), findings, misses, unchecked, is_too_long }
    }

    /// Whether no finding of the document, or of `others`, keeps it from being used.
    pub fn is_usable(&self, others: &[Finding]) -> bool {
        let is_error = |finding: &Finding| finding.rule.severity == Severity::Error;
        !self.document.broken && !self.findings.iter().chain(others).any(is_error)
    }
}

/// What the status of a class that was read from a cluster says of subnets. Nobody without a cloud can know that. The
/// rest of a status is not the author's and is not read.
fn subnets_found(kind: Kind, document: &Value) -> Option<Value> {
    let subnets = document.pointer("/status/subnets").filter(|_| kind == Kind::EC2NodeClass)?;
    let found: Vec<Subnet> = serde_json::from_value(subnets.clone()).ok()?;
    (!found.is_empty()).then(|| json!({ "subnets": found }))
}

/// Plain scalars that programs read differently.
pub fn ambiguous(kind: Kind, document: &Document) -> Vec<Finding> {
    let finding = |(pointer, what): &(String, document::Disagreement)| {
        let written = document.written(pointer).unwrap_or_default();
        let message = format!("`{written}` {}", what.meanings());
        let instead = schema::type_at(kind, pointer).and_then(|name| what.as_kubectl(&written, name));
        Finding::at(&reading::AMBIGUOUS, document, pointer, FindingPlace::Value, message)
            .hint(what.instead(&written))
            .instead(instead.map(Instead::Yaml))
    };
    document.ambiguous.iter().map(finding).collect()
}
