//! What a registry asks for before it answers: `WWW-Authenticate`.
//! Source: <https://distribution.github.io/distribution/spec/auth/token/>.

/// How to prove who asks.
#[derive(Debug, PartialEq, Eq)]
pub enum Challenge {
    /// User and password with each request.
    Basic,
    /// A token from somewhere else.
    Bearer { realm: String, service: Option<String>, scope: Option<String> },
}

impl Challenge {
    /// `None` for what is not understood.
    pub fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let (mut realm, mut service, mut scope) = (None, None, None);
        let mut rest = rest;
        while let Some((name, after)) = rest.split_once('=') {
            let name = name.trim_matches([',', ' ']);
            let (value, next) = match after.strip_prefix('"') {
                // A scope has commas in it.
                Some(quoted) => quoted.split_once('"')?,
                None => after.split_once(',').unwrap_or((after, "")),
            };
            match name.to_ascii_lowercase().as_str() {
                "realm" => realm = Some(value.to_owned()),
                "service" => service = Some(value.to_owned()),
                "scope" => scope = Some(value.to_owned()),
                _ => {}
            }
            rest = next;
        }
        Some(Self::Bearer { realm: realm?, service, scope })
    }
}
