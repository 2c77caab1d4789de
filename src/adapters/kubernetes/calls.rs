//! How often the API server was called: by verb and resource.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::Method;

/// Cheap to clone; all clones count together.
#[derive(Clone, Debug, Default)]
pub struct Calls(Arc<Mutex<BTreeMap<(&'static str, String), u64>>>);

impl Calls {
    pub(super) fn count(&self, method: &Method, path: &str, query: Option<&str>) {
        let watches = query.is_some_and(|query| query.split('&').any(|part| part == "watch=true"));
        let verb = match *method {
            Method::GET if watches => "watch",
            Method::GET => "read",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => "other",
        };
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *calls.entry((verb, resource_of(path))).or_default() += 1;
    }

    /// Verb, resource, count.
    pub fn all(&self) -> Vec<(&'static str, String, u64)> {
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.iter().map(|((verb, resource), count)| (*verb, resource.clone(), *count)).collect()
    }
}

/// `pods/eviction` of `/api/v1/namespaces/shop/pods/web-1/eviction`; `nodes` of `/api/v1/nodes/a`.
fn resource_of(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let rest = match parts.as_slice() {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
        rest => rest,
    };
    let rest = match rest {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        rest => rest,
    };
    match rest {
        [resource, _, part, ..] => format!("{resource}/{part}"),
        [resource, ..] => (*resource).to_owned(),
        [] => "version".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_named_as_in_roles() {
        assert_eq!(resource_of("/api/v1/namespaces/shop/pods/web-1/eviction"), "pods/eviction");
        assert_eq!(resource_of("/api/v1/nodes/a"), "nodes");
        assert_eq!(resource_of("/api/v1/namespaces"), "namespaces");
        assert_eq!(resource_of("/apis/karpenter.sh/v1/nodeclaims/a/status"), "nodeclaims/status");
        assert_eq!(resource_of("/version"), "version");
    }
}
