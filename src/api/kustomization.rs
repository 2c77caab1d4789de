//! What a kustomization names: the one part of it that the reader of files must understand as well as the builder.
//! Fields of `kustomize.config.k8s.io/v1beta1`.

use serde_json::Value;

/// A folder has one of these.
pub const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
pub const GROUP: &str = "kustomize.config.k8s.io";

/// For what a kustomization names a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A file of objects, or a folder with a kustomization.
    Resource,
    Component,
    Patch,
    Replacement,
    Configuration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// JSON pointer of the place in the kustomization.
    pub pointer: String,
    /// The path as it is written: relative to the folder of the kustomization.
    pub path: String,
    pub purpose: Purpose,
}

/// Whether a file is a kustomization by its name.
pub fn is_file(path: &str) -> bool {
    FILE_NAMES.contains(&path.rsplit('/').next().unwrap_or(path))
}

/// Everything that the kustomization names, in the order of its fields here.
pub fn references(kustomization: &Value) -> Vec<Reference> {
    let mut found = Vec::new();
    let lists: [(&str, &str, Purpose); 8] = [
        ("resources", "", Purpose::Resource),
        ("bases", "", Purpose::Resource),
        ("components", "", Purpose::Component),
        ("patchesStrategicMerge", "", Purpose::Patch),
        ("patches", "/path", Purpose::Patch),
        ("patchesJson6902", "/path", Purpose::Patch),
        ("replacements", "/path", Purpose::Replacement),
        ("configurations", "", Purpose::Configuration),
    ];
    for (field, member, purpose) in lists {
        let items = kustomization.get(field).and_then(Value::as_array).into_iter().flatten().enumerate();
        for (index, item) in items {
            let text = if member.is_empty() { Some(item) } else { item.pointer(member) };
            let Some(path) = text.and_then(Value::as_str).filter(|text| !text.trim().is_empty()) else { continue };
            // An entry of patchesStrategicMerge may be the patch itself.
            if path.contains('\n') || (field == "patchesStrategicMerge" && path.contains(": ")) {
                continue;
            }
            found.push(Reference { pointer: format!("/{field}/{index}{member}"), path: path.to_owned(), purpose });
        }
    }
    found
}

/// Whether the path is an address of another repository or server, as go-getter writes them.
pub fn is_remote(path: &str) -> bool {
    let host = path.split('/').next().unwrap_or(path);
    path.contains("://")
        || path.starts_with("git@")
        || path.contains("::")
        || path.contains("?ref=")
        || (path.contains('/') && ["github.com", "gitlab.com", "bitbucket.org"].contains(&host))
}

/// `path` as seen from `folder`, both relative to one root, without `.` and with `..` at the beginning at most. `None` for a
/// path that is absolute.
pub fn join(folder: &str, path: &str) -> Option<String> {
    if path.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The folder of a file; empty for the root.
pub fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}
