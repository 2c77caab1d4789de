//! What Argo CD is told in the files: its Applications, and the sources that each of them applies.

use serde_json::Value;

use super::document::Document;
use crate::api::kustomization::join;

/// The group of Argo CD's kinds.
pub const GROUP: &str = "argoproj.io";

/// Whether it is an Application, or a set of those.
pub fn is_application(document: &Document) -> bool {
    matches!(document.str("/kind"), Some("Application" | "ApplicationSet")) && document.group() == GROUP
}

/// Pointers of the sources of an Application, or of the template of those of a set.
pub fn sources_of(document: &Document) -> Vec<String> {
    let mut pointers = Vec::new();
    for spec in ["/spec", "/spec/template/spec"] {
        pointers.push(format!("{spec}/source"));
        pointers.extend(document.items(&format!("{spec}/sources")).map(|(pointer, _)| pointer));
    }
    pointers
}

/// The folder of a source, and whether what lies below it is applied as well. What a generator puts in its place is not known.
pub fn folder_of(application: &Document, source: &str) -> Option<(String, bool)> {
    let path = application.str(&format!("{source}/path")).filter(|path| !path.contains("{{"))?;
    let is_deep = application.value.pointer(&format!("{source}/directory/recurse")) == Some(&Value::Bool(true));
    Some((join("", path.trim_start_matches('/'))?, is_deep))
}
