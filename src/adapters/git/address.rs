//! Where a remote repository is, and whether this program can go there.

use std::path::{Component, Path, PathBuf};

/// Why a repository can not be followed at all.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    #[error("{url} needs {scheme}, which this program was built without: build it with `--features tls`")]
    BuiltWithoutTls { url: String, scheme: &'static str },
    #[error("{url} can not be read: `{scheme}` is none of file, http, https, git and ssh")]
    UnknownScheme { url: String, scheme: String },
    #[error("`{0}` is no folder of a repository: write it relative to the root, without `..`")]
    SubPath(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// What the library is given.
    pub url: String,
    /// What people are shown: without a password.
    pub shown: String,
    /// The path on this machine, if it is one: the library takes a path that is not there for a URL it does not know.
    pub path: Option<PathBuf>,
    /// Only the end of the history can be fetched.
    pub takes_depth: bool,
    /// Nothing between here and there may be a proxy.
    pub is_local: bool,
}

impl Address {
    /// Takes a URL, `user@host:path`, or a path.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let shown = without_password(text);
        let scheme = match text.split_once("://") {
            Some((scheme, _)) => scheme,
            None if is_scp_form(text) => "ssh",
            None => {
                let path = std::path::absolute(text).unwrap_or_else(|_| PathBuf::from(text));
                let url = path.display().to_string();
                return Ok(Self { url, shown, path: Some(path), takes_depth: false, is_local: true });
            }
        };
        let known = match scheme {
            "file" => return Ok(Self { url: text.to_owned(), shown, path: None, takes_depth: false, is_local: true }),
            "http" | "git" => None,
            "https" => Some("HTTPS"),
            "ssh" => Some("SSH"),
            _ => return Err(AddressError::UnknownScheme { url: shown, scheme: scheme.to_owned() }),
        };
        if let Some(scheme) = known
            && !cfg!(feature = "tls")
        {
            return Err(AddressError::BuiltWithoutTls { url: shown, scheme });
        }
        let is_local = is_loopback(text);
        Ok(Self { url: text.to_owned(), shown, path: None, takes_depth: true, is_local })
    }
}

/// `/` between the parts, none at the ends; empty for the root.
pub(super) fn sub_path(text: &str) -> Result<String, AddressError> {
    let mut parts = Vec::new();
    for component in Path::new(text.trim_start_matches('/')).components() {
        match component {
            Component::Normal(part) => parts.push(part.to_string_lossy()),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(AddressError::SubPath(text.to_owned()));
            }
        }
    }
    Ok(parts.join("/"))
}

/// `git@example.com:team/definitions.git`; a path with a colon has a `/` before it.
fn is_scp_form(text: &str) -> bool {
    text.split_once(':').is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'))
}

/// Host and port, with the user before them.
fn authority(url: &str) -> Option<&str> {
    url.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or(rest))
}

fn without_password(url: &str) -> String {
    let secret = authority(url).and_then(|authority| authority.rsplit_once('@'));
    match secret.and_then(|(user, _)| user.split_once(':')) {
        Some((user, password)) => url.replacen(&format!("{user}:{password}@"), &format!("{user}@"), 1),
        None => url.to_owned(),
    }
}

fn is_loopback(url: &str) -> bool {
    let host = authority(url).map(|authority| authority.rsplit_once('@').map_or(authority, |(_, host)| host));
    host.is_some_and(|host| ["localhost", "127.", "[::1]"].iter().any(|local| host.starts_with(local)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_what_needs_tls() {
        for url in ["https://example.com/a.git", "ssh://git@example.com/a.git", "git@example.com:a.git"] {
            let parsed = Address::parse(url);
            if cfg!(feature = "tls") {
                assert!(parsed.is_ok(), "{url}");
            } else {
                assert!(matches!(parsed, Err(AddressError::BuiltWithoutTls { .. })), "{url}");
            }
        }
        for url in ["file:///srv/a.git", "/srv/a.git", "a.git", "./a:b", "http://localhost/a", "git://example.com/a"] {
            assert!(Address::parse(url).is_ok(), "{url}");
        }
        assert!(matches!(Address::parse("ftp://example.com/a"), Err(AddressError::UnknownScheme { .. })));
    }

    #[test]
    fn shows_no_password() {
        for (url, shown) in [
            ("http://me:secret@example.com/a.git", "http://me@example.com/a.git"),
            ("http://me:se:cr@et@example.com/a.git", "http://me@example.com/a.git"),
            ("http://me@example.com:8080/a.git", "http://me@example.com:8080/a.git"),
            ("http://example.com:8080/a@b:c", "http://example.com:8080/a@b:c"),
        ] {
            assert_eq!(Address::parse(url).unwrap().shown, shown);
        }
    }

    #[test]
    fn a_proxy_is_not_asked_for_this_machine() {
        for (url, is_local) in [
            ("http://127.0.0.1:80/a", true),
            ("http://me@localhost/a", true),
            ("git://[::1]:9418/a", true),
            ("http://example.com/127.0.0.1", false),
        ] {
            assert_eq!(Address::parse(url).unwrap().is_local, is_local, "{url}");
        }
    }

    #[test]
    fn a_sub_path_stays_inside() {
        for (text, expected) in [("", ""), ("a/b", "a/b"), ("./a//b/", "a/b"), ("/a", "a"), (".", "")] {
            assert_eq!(sub_path(text).unwrap(), expected, "{text}");
        }
        for text in ["..", "a/../..", "../a"] {
            assert!(sub_path(text).is_err(), "{text}");
        }
    }
}
