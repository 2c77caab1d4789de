//! Where an artifact is: `oci://registry.example.com/team/snapshots:blue`.

use std::fmt;

/// What every registry takes for a name. Source: the specification, section "Pulling manifests".
const TAG_CHARACTERS_MAX: usize = 128;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ReferenceError {
    #[error("`{0}` is no artifact: write oci://HOST/REPOSITORY:TAG")]
    NotAnArtifact(String),
    #[error("`{0}` has a user or a password in it: credentials belong into a file")]
    Credentials(String),
}

/// A host, a repository on it, and a tag or digest in that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    host: String,
    repository: String,
    tag: String,
}

/// The scheme by which artifacts are told from files.
pub const SCHEME: &str = "oci://";

impl Reference {
    /// Without a tag: `latest`.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let wrong = || ReferenceError::NotAnArtifact(text.to_owned());
        let (host, rest) = text.strip_prefix(SCHEME).and_then(|rest| rest.split_once('/')).ok_or_else(wrong)?;
        if host.contains('@') {
            return Err(ReferenceError::Credentials(format!(
                "{SCHEME}...{}",
                host.rsplit('@').next().unwrap_or_default()
            )));
        }
        let (repository, tag) = match rest.split_once('@') {
            Some((repository, digest)) if super::is_digest(digest) => (repository, digest),
            Some(_) => return Err(wrong()),
            None => rest.split_once(':').unwrap_or((rest, "latest")),
        };
        let is_host = !host.is_empty() && host.chars().all(|it| it.is_ascii_alphanumeric() || ".-:[]".contains(it));
        let is_part = |part: &str| {
            let inside = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || "._-".contains(it);
            part.starts_with(|it: char| it.is_ascii_lowercase() || it.is_ascii_digit()) && part.chars().all(inside)
        };
        let is_tag = tag.len() <= TAG_CHARACTERS_MAX
            && !tag.starts_with(['.', '-'])
            && !tag.is_empty()
            && tag.chars().all(|it| it.is_ascii_alphanumeric() || "._-:".contains(it));
        if !is_host || !repository.split('/').all(is_part) || !is_tag {
            return Err(wrong());
        }
        Ok(Self { host: host.to_owned(), repository: repository.to_owned(), tag: tag.to_owned() })
    }

    /// A tag, or a digest.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    pub(super) fn repository(&self) -> &str {
        &self.repository
    }

    /// `https://HOST`; without TLS on this machine alone.
    pub(super) fn origin(&self) -> String {
        let name = self.host.rsplit_once(':').map_or(self.host.as_str(), |(name, _)| name);
        let is_here = matches!(name, "localhost" | "127.0.0.1" | "[::1]") || self.host == "localhost";
        format!("{}://{}", if is_here { "http" } else { "https" }, self.host)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.tag.contains(':') { '@' } else { ':' };
        write!(formatter, "{SCHEME}{}/{}{sign}{}", self.host, self.repository, self.tag)
    }
}
