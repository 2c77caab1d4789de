//! Where a remote repository is, and whether this program can go there.

use std::fmt;
use std::path::{Component, Path, PathBuf};

/// Why a repository can not be followed at all.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    #[error("{url} needs {scheme}, which this program was built without: build it with `--features tls`")]
    BuiltWithoutTls { url: String, scheme: &'static str },
    #[error("{url} can not be read: `{scheme}` is none of file, http, https, git and ssh")]
    UnknownScheme { url: String, scheme: String },
    #[error(
        "{url} names no host, or its port is no number; what is `/`, `?` or `#` in a password is written as %2F, %3F or %23"
    )]
    NoHost { url: String },
    #[error("`{0}` is no folder of a repository: write it relative to the root, without `..`")]
    SubPath(String),
}

/// Not `Debug` as it is, so that what only the library is told ends up in no log.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// What the library is given: for HTTP without user and password, which it would take to wherever a redirect leads.
    pub url: String,
    /// What people are shown: without user, password, query and fragment.
    pub shown: String,
    /// User and password of an HTTP address.
    pub user: Option<(String, String)>,
    /// Whom an HTTP request goes to. Nobody else gets credentials.
    pub origin: Option<Origin>,
    /// The path on this machine, if it is one: the library takes a path that is not there for a URL it does not know.
    pub path: Option<PathBuf>,
    /// Only the end of the history can be fetched.
    pub takes_depth: bool,
    /// Nothing between here and there may be a proxy.
    pub is_local: bool,
}

impl fmt::Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Address").field(&self.shown).finish()
    }
}

/// Scheme, host and port of an HTTP address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub scheme: String,
    pub host: String,
    pub port: u16,
}

impl Origin {
    pub fn of(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let standard = match scheme.as_str() {
            "http" => 80,
            "https" => 443,
            _ => return None,
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let (host, port) = match authority.rsplit_once(':') {
            // The colons of an IPv6 address are no port.
            Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
            _ => (authority, standard),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        (!host.is_empty()).then_some(Self { scheme, host, port })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, host, port } = self;
        if host.contains(':') {
            write!(formatter, "{scheme}://[{host}]:{port}")
        } else {
            write!(formatter, "{scheme}://{host}:{port}")
        }
    }
}

impl Address {
    /// Takes a URL, `user@host:path`, or a path.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let shown = redacted(text);
        let of = |url: String, path: Option<PathBuf>, is_local: bool| Self {
            url,
            shown: shown.clone(),
            user: None,
            origin: None,
            path,
            takes_depth: false,
            is_local,
        };
        let scheme = match text.split_once("://") {
            Some((scheme, _)) => scheme,
            None if is_scp_form(text) => "ssh",
            None => {
                let path = std::path::absolute(text).unwrap_or_else(|_| PathBuf::from(text));
                return Ok(of(path.display().to_string(), Some(path), true));
            }
        };
        let known = match scheme {
            "file" => return Ok(of(text.to_owned(), None, true)),
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
        let is_http = matches!(scheme, "http" | "https");
        let (url, user) = if is_http { without_user(text) } else { (text.to_owned(), None) };
        let is_local = is_loopback(&url);
        let origin = Origin::of(&url);
        if is_http && origin.is_none() {
            return Err(AddressError::NoHost { url: shown });
        }
        Ok(Self { url, shown, user, origin, path: None, takes_depth: true, is_local })
    }

    /// What the library says, without what is not shown of the address.
    pub fn hide_in(&self, message: &str) -> String {
        let mut message = message.replace(&self.url, &self.shown);
        let query = self.url.split_once('?').map(|(_, query)| query.to_owned());
        let (user, password) = self.user.clone().unzip();
        for secret in [query, user, password].into_iter().flatten().filter(|secret| secret.len() > 2) {
            message = message.replace(&secret, "***");
        }
        message
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

/// The folder that a sub path names below this one.
pub fn folder_below(folder: &Path, text: &str) -> Result<PathBuf, AddressError> {
    Ok(folder.join(sub_path(text)?))
}

/// `git@example.com:team/definitions.git`; a path with a colon has a `/` before it.
fn is_scp_form(text: &str) -> bool {
    text.split_once(':').is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'))
}

/// Host and port, with the user before them.
fn authority(url: &str) -> Option<&str> {
    url.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or(rest))
}

/// What may be shown of an address: neither user nor password, which may both be a token, nor query or fragment.
pub fn redacted(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        if !is_scp_form(text) {
            return text.to_owned();
        }
        return text.split_once('@').map_or(text, |(_, behind)| behind).to_owned();
    };
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let (authority, path) = rest.split_at_checked(rest.find('/').unwrap_or(rest.len())).unwrap_or((rest, ""));
    if let Some((_, host)) = authority.rsplit_once('@') {
        return format!("{scheme}://{host}{path}");
    }
    // A password may hold what ends an authority: then it is no host that stands here.
    match authority.rsplit_once(':') {
        Some((_, port)) if !port.contains(']') && port.parse::<u16>().is_err() => format!("{scheme}://***"),
        None if path.contains('@') => format!("{scheme}://***@{}", path.rsplit('@').next().unwrap_or_default()),
        _ => format!("{scheme}://{rest}"),
    }
}

/// The address of an HTTP server without user and password, and these.
fn without_user(url: &str) -> (String, Option<(String, String)>) {
    let found = authority(url).and_then(|authority| authority.rsplit_once('@'));
    let Some((user, _)) = found else { return (url.to_owned(), None) };
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    (url.replacen(&format!("{user}@"), "", 1), Some((decoded(name), decoded(password))))
}

/// `%40` stands for `@`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let hex = behind.get(..2).and_then(|hex| str::from_utf8(hex).ok());
        let byte = hex.filter(|_| *first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { behind.get(2..).unwrap_or_default() } else { behind };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
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
    fn shows_neither_user_nor_password_nor_query() {
        for (url, shown) in [
            ("http://me:secret@example.com/a.git", "http://example.com/a.git"),
            ("http://me:se:cr@et@example.com/a.git", "http://example.com/a.git"),
            ("http://token@example.com:8080/a.git", "http://example.com:8080/a.git"),
            ("http://me:se/cr@example.com/a.git", "http://***"),
            ("http://me:se?cr@example.com/a.git", "http://***"),
            ("http://me:se#cr@example.com/a.git", "http://***"),
            ("http://to/ken@example.com/a.git", "http://***@example.com/a.git"),
            ("http://example.com/a.git?private_token=se@cret", "http://example.com/a.git"),
            ("http://me:secret@example.com/a@b", "http://example.com/a@b"),
            ("http://example.com:8080/a@b:c", "http://example.com:8080/a@b:c"),
            ("http://example.com/a.git?private_token=secret", "http://example.com/a.git"),
            ("http://example.com/a.git#secret", "http://example.com/a.git"),
            ("https://token@example.com/a.git?x=token", "https://example.com/a.git"),
            ("token@example.com:team/a.git", "example.com:team/a.git"),
            ("ssh://me:secret@example.com/a.git", "ssh://example.com/a.git"),
            ("/srv/a@b.git", "/srv/a@b.git"),
        ] {
            assert_eq!(redacted(url), shown, "{url}");
            assert!(!format!("{:?}", Address::parse(url)).contains("secret"), "{url}");
        }
    }

    #[test]
    fn user_and_password_are_not_the_librarys() {
        let address = Address::parse("http://me:p%40ss@example.com/a.git?x=quiet").unwrap();
        assert_eq!(address.url, "http://example.com/a.git?x=quiet");
        assert_eq!(address.user, Some(("me".to_owned(), "p@ss".to_owned())));
        let said = address.hide_in("malformed http://example.com/a.git?x=quiet for me with p@ss");
        assert_eq!(said, "malformed http://example.com/a.git for me with ***");
        assert!(matches!(Address::parse("http://me:se/cr@example.com/a"), Err(AddressError::NoHost { .. })));
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        for (url, shown) in [
            ("http://Example.com/a", "http://example.com:80"),
            ("https://me@example.com?x", "https://example.com:443"),
            ("http://[::1]:8080/a", "http://[::1]:8080"),
            ("http://[::1]/a", "http://[::1]:80"),
        ] {
            assert_eq!(Origin::of(url).unwrap().to_string(), shown, "{url}");
        }
        for url in ["http:///a", "http://host:port/a", "git://host/a", "/a"] {
            assert_eq!(Origin::of(url), None, "{url}");
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
