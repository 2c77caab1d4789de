//! Whether a server asks for credentials itself, before it gets any.
//!
//! The library follows redirects, and asks for credentials without saying whom they would go to: it names the address that it
//! was given. So the address is asked here, without credentials. Only one that answers for itself that it wants some gets them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use super::address::{Origin, redacted};

/// How long a connection, and each part of an answer, may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an answer that are looked at. Its head has some hundreds.
const BYTES_MAX: u64 = 64 << 10;
/// Redirects to the same server, such as to the name with `.git`.
const HOPS_MAX: usize = 4;

/// Why credentials are not given.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotAsked {
    #[error("the server redirects to {0}, which gets no credentials: name that address, if it is meant")]
    Redirected(String),
    #[error("the server does not ask for the credentials itself (status {0}): they are not given")]
    Status(u16),
    #[error("whether the server asks for the credentials itself can not be seen: they are not given")]
    Unanswered(#[source] std::io::Error),
}

/// Asks `url`, an HTTP address, as Git would.
pub(super) fn asks_itself(url: &str, origin: &Origin) -> Result<(), NotAsked> {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let more = if query.is_empty() { String::new() } else { format!("{query}&") };
    let mut target = path_of(base).trim_end_matches('/').to_owned();
    target.push_str(&format!("/info/refs?{more}service=git-upload-pack"));
    for _ in 0..HOPS_MAX {
        let answer = ask(origin, &target).map_err(NotAsked::Unanswered)?;
        match answer.status {
            401 => return Ok(()),
            300..=399 => {
                let location = answer.location.unwrap_or_default();
                if !location.starts_with('/') || location.starts_with("//") {
                    if Origin::of(&location).as_ref() != Some(origin) {
                        return Err(NotAsked::Redirected(redacted(&location)));
                    }
                    target = path_of(&location).to_owned();
                } else {
                    target = location;
                }
            }
            status => return Err(NotAsked::Status(status)),
        }
    }
    Err(NotAsked::Redirected("itself, again and again".to_owned()))
}

/// From the first `/` after the host.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').and_then(|start| rest.get(start..)).unwrap_or("/")
}

struct HttpAnswer {
    status: u16,
    location: Option<String>,
}

fn ask(origin: &Origin, target: &str) -> std::io::Result<HttpAnswer> {
    let invalid = |what: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_owned());
    if target.bytes().any(|byte| byte.is_ascii_control() || byte == b' ') {
        return Err(invalid("the address holds characters that no request may"));
    }
    let mut failed = invalid("the host has no address");
    for address in (origin.host.as_str(), origin.port).to_socket_addrs()? {
        let stream = match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => stream,
            Err(error) => {
                failed = error;
                continue;
            }
        };
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let host = origin.to_string();
        let host = host.split_once("://").map_or(host.as_str(), |(_, host)| host);
        let host = host.strip_suffix(":80").unwrap_or(host);
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: git/2.0 (cutlist)\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        );
        (&stream).write_all(request.as_bytes())?;
        return read(BufReader::new(stream.take(BYTES_MAX)));
    }
    Err(failed)
}

fn read(mut reader: impl BufRead) -> std::io::Result<HttpAnswer> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.strip_prefix("HTTP/").and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    let Some(status) = status else {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "the answer is not HTTP"));
    };
    let mut location = None;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
            return Ok(HttpAnswer { status, location });
        }
        if let Some((name, value)) = line.split_once(':')
            && name.trim().eq_ignore_ascii_case("location")
        {
            location = Some(value.trim().to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_head_of_an_answer() {
        let answer = read(&b"HTTP/1.1 302 Found\r\nX: y\r\nlocation: http://b/x\r\n\r\nLocation: /no"[..]).unwrap();
        assert_eq!((answer.status, answer.location.as_deref()), (302, Some("http://b/x")));
        assert_eq!(read(&b"HTTP/1.0 401 No"[..]).unwrap().status, 401);
        for text in ["", "SSH-2.0-x", "HTTP/1.1"] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_path_begins_behind_the_host() {
        for (url, path) in [("http://a:80/b/c", "/b/c"), ("http://a", "/"), ("http://a/", "/")] {
            assert_eq!(path_of(url), path);
        }
    }
}
