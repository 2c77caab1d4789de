//! SARIF 2.1.0, the form in which forges and editors exchange findings.
//! Source: <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>; what GitHub reads of it:
//! <https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning>.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use serde_sarif::sarif::{
    Artifact, ArtifactChange, ArtifactContent, ArtifactLocation, Fix, Location, LogicalLocation, Message,
    MultiformatMessageString, PhysicalLocation, PropertyBag, Region, Replacement, ReportingConfiguration,
    ReportingDescriptor, Result as SarifResult, ResultLevel, Run, SCHEMA_URL, Sarif, Suppression, Tool, ToolComponent,
};

use super::LintReport;
use super::place::{end, end_column, page_of_rule, relative};
use crate::definitions::diagnostic::Span;
use crate::definitions::{self, Diagnostic, RuleDescription, Severity, Suppressed, SuppressedBy};

/// The name under which fingerprints are kept. Fingerprints that are made in another way need another number.
const FINGERPRINT: &str = "cutlistFinding/v1";

/// One run. `source` gives the text of a file by the path in its findings.
pub fn sarif<'s>(report: &LintReport, source: impl Fn(&str) -> Option<&'s str>) -> String {
    let form = Form { report, source: &source };
    let counted = report.diagnostics.iter().map(|diagnostic| form.result(diagnostic, None));
    let suppressed = report.suppressed.iter().map(|it| form.result(&it.diagnostic, Some(it)));
    let driver = ToolComponent {
        information_uri: Some(env!("CARGO_PKG_REPOSITORY").to_owned()),
        semantic_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        rules: Some(report.rules.iter().map(rule).collect()),
        ..ToolComponent::builder().name("cutlist").build()
    };
    let artifacts = super::by_file(report)
        .into_keys()
        .map(|path| Artifact { location: Some(artifact(path)), ..Artifact::builder().build() });
    let run = Run {
        artifacts: Some(artifacts.collect()),
        column_kind: Some(json!("unicodeCodePoints")),
        results: Some(counted.chain(suppressed).collect()),
        ..Run::builder().tool(Tool::builder().driver(driver).build()).build()
    };
    let sarif = Sarif::builder().schema(SCHEMA_URL).version(json!("2.1.0")).runs(vec![run]).build();
    // The report holds texts and numbers only, and these can always be written.
    serde_json::to_string_pretty(&sarif).map(|text| text + "\n").unwrap_or_default()
}

struct Form<'r, S> {
    report: &'r LintReport,
    source: &'r S,
}

impl<'s, S: Fn(&str) -> Option<&'s str>> Form<'_, S> {
    fn result(&self, diagnostic: &Diagnostic, suppressed: Option<&Suppressed>) -> SarifResult {
        let text = match &diagnostic.hint {
            Some(hint) => format!("{}\n{hint}", diagnostic.message),
            None => diagnostic.message.clone(),
        };
        let rule_index = self.report.rules.iter().position(|rule| rule.code == diagnostic.code);
        let object = diagnostic.object.as_ref().map(|object| {
            vec![LogicalLocation {
                fully_qualified_name: Some(object.clone()),
                kind: Some("object".to_owned()),
                ..LogicalLocation::builder().build()
            }]
        });
        let location = Location { logical_locations: object, ..self.location(&diagnostic.file, diagnostic.span) };
        let related = diagnostic.related.iter().enumerate().map(|(index, related)| Location {
            id: Some(number(index + 1)),
            message: Some(message(&related.message)),
            ..self.location(&related.file, related.span)
        });
        let related: Vec<Location> = related.collect();
        let fingerprints = BTreeMap::from([(FINGERPRINT.to_owned(), diagnostic.fingerprint.clone())]);
        SarifResult {
            rule_id: Some(diagnostic.code.clone()),
            rule_index: rule_index.map(number),
            level: Some(match diagnostic.severity {
                Severity::Error => ResultLevel::Error,
                Severity::Warning => ResultLevel::Warning,
                Severity::Note => ResultLevel::Note,
            }),
            locations: Some(vec![location]),
            related_locations: (!related.is_empty()).then_some(related),
            partial_fingerprints: Some(fingerprints),
            fixes: diagnostic.fix.as_ref().map(|fix| vec![self.fix(diagnostic, fix)]),
            // An empty list tells a viewer that nothing suppresses the finding.
            suppressions: Some(suppressed.map(suppression).into_iter().collect()),
            ..SarifResult::builder().message(message(&text)).build()
        }
    }

    fn location(&self, file: &str, span: Span) -> Location {
        let physical = PhysicalLocation {
            artifact_location: Some(artifact(file)),
            region: Some(self.region(file, span)),
            ..PhysicalLocation::builder().build()
        };
        Location { physical_location: Some(physical), ..Location::builder().build() }
    }

    fn region(&self, file: &str, span: Span) -> Region {
        let source = (self.source)(file);
        let (line, column) = (span.line.max(1), span.column.max(1));
        Region {
            start_line: Some(number(line)),
            start_column: Some(number(column)),
            end_line: Some(number(line)),
            end_column: Some(number(end_column(span, source).max(column))),
            ..Region::builder().build()
        }
    }

    fn fix(&self, diagnostic: &Diagnostic, fix: &definitions::Fix) -> Fix {
        let inserted = ArtifactContent { text: Some(fix.text.clone()), ..ArtifactContent::builder().build() };
        let (end_line, end_column) = end(fix.span, (self.source)(&diagnostic.file));
        let region = Region {
            end_line: Some(number(end_line)),
            end_column: Some(number(end_column)),
            ..self.region(&diagnostic.file, fix.span)
        };
        let replacement =
            Replacement { inserted_content: Some(inserted), ..Replacement::builder().deleted_region(region).build() };
        let change = ArtifactChange::builder()
            .artifact_location(artifact(&diagnostic.file))
            .replacements(vec![replacement])
            .build();
        let description = match fix.text.as_str() {
            "" => message("remove it"),
            // Of several parts that go.
            text if text.contains('\n') => message("remove it, and keep what stands between"),
            text => message(&format!("write `{text}`")),
        };
        Fix { description: Some(description), ..Fix::builder().artifact_changes(vec![change]).build() }
    }
}

fn rule(rule: &RuleDescription) -> ReportingDescriptor {
    let level = match rule.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let configuration =
        ReportingConfiguration { level: Some(json!(level)), ..ReportingConfiguration::builder().build() };
    let help = MultiformatMessageString {
        markdown: Some(rule.page.clone()),
        ..MultiformatMessageString::builder().text(rule.explanation.clone()).build()
    };
    let tags = vec!["kubernetes".to_owned(), "karpenter".to_owned()];
    ReportingDescriptor {
        name: Some(camel(rule.name)),
        short_description: Some(MultiformatMessageString::builder().text(rule.summary).build()),
        full_description: Some(MultiformatMessageString::builder().text(rule.explanation.clone()).build()),
        help: Some(help),
        help_uri: Some(page_of_rule(rule.code)),
        default_configuration: Some(configuration),
        properties: Some(PropertyBag { tags: Some(tags), ..PropertyBag::builder().build() }),
        ..ReportingDescriptor::builder().id(rule.code).build()
    }
}

fn suppression(suppressed: &Suppressed) -> Suppression {
    let kind = match suppressed.by {
        SuppressedBy::Comment | SuppressedBy::Annotation => "inSource",
        SuppressedBy::Settings | SuppressedBy::Baseline => "external",
    };
    Suppression { justification: Some(suppressed.reason.clone()), ..Suppression::builder().kind(json!(kind)).build() }
}

fn message(text: &str) -> Message {
    Message { text: Some(text.to_owned()), ..Message::builder().build() }
}

/// `duplicate-key` is `DuplicateKey`, as the form asks for.
fn camel(name: &str) -> String {
    let part = |part: &str| {
        let mut characters = part.chars();
        characters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(characters).collect::<String>()
    };
    name.split('-').map(part).collect()
}

/// Characters that are escaped in the path of an address (RFC 3986).
const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'+').remove(b'@');

fn artifact(path: &str) -> ArtifactLocation {
    let path = relative(path);
    let encoded = utf8_percent_encode(path, PATH).to_string();
    let uri = if path.starts_with('/') { format!("file://{encoded}") } else { encoded };
    ArtifactLocation { uri: Some(uri), ..ArtifactLocation::builder().build() }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_addresses() {
        let uri = |path: &str| artifact(path).uri.unwrap_or_default();
        assert_eq!(uri("./a b/c#d%.yaml"), "a%20b/c%23d%25.yaml");
        assert_eq!(uri("/tmp/a.yaml"), "file:///tmp/a.yaml");
        assert_eq!(uri("<stdin>"), "%3Cstdin%3E");
        assert_eq!(uri("節.yaml"), "%E7%AF%80.yaml");
        assert_eq!(camel("duplicate-key"), "DuplicateKey");
    }
}
