//! Where a forge is: scheme, host, port and the path that its API begins with.

use hyper::Uri;
use hyper::http::uri::Scheme;

use crate::adapters::http::is_this_machine;

#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    #[error("{0:?} is no address: write https://HOST, with a port and a path where they are needed")]
    NoAddress(String),
    #[error("the address holds a user or a password; credentials come from a file or a variable")]
    HoldsCredentials,
    #[error("{0} is not encrypted, so everybody on the way would read the token: write https://")]
    NotEncrypted(String),
}

/// The address of an API. Nothing is sent anywhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    scheme: Scheme,
    /// Host and port.
    authority: String,
    /// Without a slash at its end; may be empty.
    path: String,
}

impl Address {
    /// `allows_plain`: also without encryption to other machines, as within a cluster.
    pub fn parse(text: &str, allows_plain: bool) -> Result<Self, AddressError> {
        if text.split_once("://").is_some_and(|(_, rest)| rest.split('/').next().unwrap_or_default().contains('@')) {
            return Err(AddressError::HoldsCredentials);
        }
        let no_address = || AddressError::NoAddress(text.split(['?', '#']).next().unwrap_or_default().to_owned());
        if text.contains(['?', '#']) {
            return Err(no_address());
        }
        let uri: Uri = text.parse().map_err(|_| no_address())?;
        let (Some(scheme), Some(authority)) = (uri.scheme().cloned(), uri.authority()) else {
            return Err(no_address());
        };
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        if host.is_empty() || (scheme != Scheme::HTTPS && scheme != Scheme::HTTP) {
            return Err(no_address());
        }
        let address = Self {
            scheme,
            authority: authority.as_str().to_owned(),
            path: uri.path().trim_end_matches('/').to_owned(),
        };
        if address.scheme == Scheme::HTTP && !is_this_machine(&host) && !allows_plain {
            return Err(AddressError::NotEncrypted(address.to_string()));
        }
        Ok(address)
    }

    /// The same machine with another path below that of this address.
    #[must_use]
    pub fn below(&self, path: &str) -> Self {
        if self.path.ends_with(path) {
            return self.clone();
        }
        Self { path: format!("{}{path}", self.path), ..self.clone() }
    }

    pub fn host(&self) -> &str {
        &self.authority
    }

    /// Without a path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Another host for the same forge, as `api.github.com` of `github.com`.
    #[must_use]
    pub fn at(&self, host: &str, path: &str) -> Self {
        Self { scheme: self.scheme.clone(), authority: host.to_owned(), path: path.to_owned() }
    }

    pub(super) fn uri(&self, path: &str, from_root: bool) -> String {
        let below = if from_root { "" } else { self.path.as_str() };
        format!("{}://{}{below}{path}", self.scheme, self.authority)
    }

    /// Whether an answer that names this place sends to the same machine by the same way.
    pub(super) fn is_of_this_machine(&self, place: &str) -> bool {
        let is_path = place.starts_with('/') && !place.starts_with("//");
        let below = place.strip_prefix(&format!("{}://{}", self.scheme, self.authority));
        is_path || below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    }

    pub(super) fn shown(&self) -> String {
        self.authority.clone()
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}://{}{}", self.scheme, self.authority, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_addresses_and_nothing_that_leaks() {
        let shown =
            |text: &str| Address::parse(text, false).map(|it| it.to_string()).map_err(|error| error.to_string());
        assert_eq!(shown("https://git.example.com/"), Ok("https://git.example.com".to_owned()));
        assert_eq!(shown("https://example.com:8443/git/"), Ok("https://example.com:8443/git".to_owned()));
        assert_eq!(shown("http://127.0.0.1:3000"), Ok("http://127.0.0.1:3000".to_owned()));
        assert_eq!(shown("http://[::1]:3000"), Ok("http://[::1]:3000".to_owned()));
        for text in ["", "git.example.com", "ftp://a", "https://", "https://a?token=secret", "https://a#b"] {
            let error = shown(text).unwrap_err();
            assert!(error.contains("is no address") && !error.contains("secret"), "{text}: {error}");
        }
        assert!(shown("https://me:secret@example.com").unwrap_err().contains("holds a user"));
        assert!(shown("http://git.example.com").unwrap_err().contains("not encrypted"));
        assert!(Address::parse("http://git.example.com", true).is_ok());
    }

    #[test]
    fn another_machine_is_told_from_another_path() {
        let address = Address::parse("https://git.example.com/api/v1", false).unwrap();
        for place in ["/api/v1/repos/acme/fleet", "https://git.example.com/api/v1/repos/acme/fleet"] {
            assert!(address.is_of_this_machine(place), "{place}");
        }
        for place in [
            "nothing",
            "//elsewhere.example.com/api",
            "http://git.example.com/api",
            "https://git.example.com.evil.example/api",
            "https://git.example.com:8443/api",
        ] {
            assert!(!address.is_of_this_machine(place), "{place}");
        }
    }
}
