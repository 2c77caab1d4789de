//! The object of a source, as far as it is read, and how it is named on a command line.

use std::str::FromStr;

use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::Value;

use crate::core::plan::Revision;

const GROUP: &str = "source.toolkit.fluxcd.io";
const VERSION: &str = "v1";
/// Of what an object says in words.
const MESSAGE_CHARACTERS_MAX: usize = 300;

/// The kinds of Flux that have an artifact with manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    GitRepository,
    OciRepository,
    Bucket,
}

impl SourceKind {
    const ALL: [Self; 3] = [Self::GitRepository, Self::OciRepository, Self::Bucket];

    pub fn name(self) -> &'static str {
        match self {
            Self::GitRepository => "GitRepository",
            Self::OciRepository => "OCIRepository",
            Self::Bucket => "Bucket",
        }
    }

    pub fn resource(self) -> &'static str {
        match self {
            Self::GitRepository => "gitrepositories",
            Self::OciRepository => "ocirepositories",
            Self::Bucket => "buckets",
        }
    }

    pub(super) fn api(self) -> ApiResource {
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, VERSION, self.name()), self.resource())
    }
}

/// `GitRepository/nodes.flux-system`, as the command line of Flux names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceName {
    pub kind: SourceKind,
    pub name: String,
    pub namespace: String,
}

impl FromStr for SourceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let help = || "write KIND/NAME.NAMESPACE, such as GitRepository/nodes.flux-system".to_owned();
        let (kind, rest) = text.split_once('/').ok_or_else(help)?;
        // A name may have dots, a namespace has none.
        let (name, namespace) = rest.rsplit_once('.').ok_or_else(help)?;
        let is_name = |text: &str, most: usize| {
            !text.is_empty()
                && text.len() <= most
                && text.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-' || it == b'.')
        };
        if !is_name(name, 253) || !is_name(namespace, 63) {
            return Err(help());
        }
        let known = SourceKind::ALL.into_iter().find(|it| it.name().eq_ignore_ascii_case(kind));
        let kind = known.ok_or_else(|| format!("{kind} is none of GitRepository, OCIRepository and Bucket"))?;
        Ok(Self { kind, name: name.to_owned(), namespace: namespace.to_owned() })
    }
}

impl std::fmt::Display for SourceName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}.{}", self.kind.name(), self.name, self.namespace)
    }
}

/// What Flux fetched last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    pub url: String,
    /// `sha256:…`, of the archive.
    pub digest: String,
    /// `main@sha1:…`
    pub revision: String,
}

impl Artifact {
    /// The commit, or the digest of what is no commit; and the branch or the tag.
    pub fn revision(&self) -> Revision {
        // Of an artifact without a name, such as a bucket's, there is only a digest.
        let (reference, id) = self.revision.rsplit_once('@').unwrap_or(("", &self.revision));
        let id = id.split_once(':').map_or(id, |(_, digits)| digits);
        Revision { id: id.to_owned(), reference: reference.to_owned() }
    }
}

/// What the object says now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    pub artifact: Option<Artifact>,
    /// Why there is no newer one, as its condition `Ready` says.
    pub trouble: Option<String>,
    /// Somebody wants no newer one: `spec.suspend`.
    pub is_suspended: bool,
}

impl Told {
    pub fn of(object: &DynamicObject) -> Self {
        let status = &object.data["status"];
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let artifact = &status["artifact"];
        let artifact = text(&artifact["url"]).zip(text(&artifact["digest"])).zip(text(&artifact["revision"]));
        let artifact = artifact.map(|((url, digest), revision)| Artifact { url, digest, revision });
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let mut trouble = conditions.filter(|it| it["type"] == "Ready" && it["status"] == "False").map(|condition| {
            let message = text(&condition["message"]).or_else(|| text(&condition["reason"])).unwrap_or_default();
            let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
            line.chars().filter(|it| !it.is_control()).take(MESSAGE_CHARACTERS_MAX).collect()
        });
        let is_suspended = object.data["spec"]["suspend"] == Value::Bool(true);
        Self { artifact, trouble: trouble.next_back(), is_suspended }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sources_are_named_as_flux_names_them() {
        let read = |text: &str| text.parse::<SourceName>().map(|it| (it.to_string(), it.kind.resource()));
        assert_eq!(
            read("GitRepository/nodes.flux-system"),
            Ok(("GitRepository/nodes.flux-system".to_owned(), "gitrepositories"))
        );
        assert_eq!(read("ocirepository/a.b.c"), Ok(("OCIRepository/a.b.c".to_owned(), "ocirepositories")));
        assert_eq!(read("Bucket/a.b").unwrap().1, "buckets");
        for text in
            ["", "nodes", "GitRepository/nodes", "HelmRepository/a.b", "GitRepository/a/b.c", "GitRepository/A.b"]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn revisions_of_every_kind_have_an_identity() {
        let read = |revision: &str| {
            let (url, digest) = (String::new(), String::new());
            let Revision { id, reference } = Artifact { url, digest, revision: revision.to_owned() }.revision();
            (id, reference)
        };
        assert_eq!(read("main@sha1:abc"), ("abc".to_owned(), "main".to_owned()));
        assert_eq!(read("refs/tags/v1@sha1:abc"), ("abc".to_owned(), "refs/tags/v1".to_owned()));
        assert_eq!(read("latest@sha256:def"), ("def".to_owned(), "latest".to_owned()));
        assert_eq!(read("sha256:def"), ("def".to_owned(), String::new()));
    }

    #[test]
    fn an_object_tells_its_artifact_and_its_trouble() {
        let of = |status: Value| {
            let mut object = DynamicObject::new("nodes", &SourceKind::GitRepository.api());
            object.data = json!({ "status": status });
            Told::of(&object)
        };
        let artifact =
            json!({ "url": "http://a/b.tar.gz", "digest": "sha256:a", "revision": "main@sha1:b", "size": 7 });
        let told = of(json!({ "artifact": artifact }));
        assert_eq!(told.artifact.unwrap().url, "http://a/b.tar.gz");
        assert_eq!(told.trouble, None);
        let refused =
            json!([{ "type": "Ready", "status": "False", "reason": "GitOperationFailed", "message": "no\nway\u{1b}" }]);
        let told = of(json!({ "artifact": artifact, "conditions": refused }));
        assert_eq!((told.artifact.is_some(), told.trouble.as_deref()), (true, Some("no way")));
        assert_eq!(of(json!({ "artifact": { "url": "http://a" } })), Told::default());
        assert_eq!(of(Value::Null), Told::default());
        let mut object = DynamicObject::new("nodes", &SourceKind::GitRepository.api());
        object.data = json!({ "spec": { "suspend": true } });
        assert_eq!(Told::of(&object), Told { is_suspended: true, ..Told::default() });
    }
}
