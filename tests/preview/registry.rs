//! Snapshots in a registry: one on loopback that does what the specification says, and asks for a token first.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};

use crate::laid_out::laid_out;
use crate::program::{NOW, cutlist};
use crate::{MERGE, root};

#[derive(Default)]
struct Registry {
    blobs: BTreeMap<String, Vec<u8>>,
    manifests: BTreeMap<String, Vec<u8>>,
    requests: Vec<String>,
    /// So many requests are answered with 503.
    busy: usize,
    /// Whether what it hands out is not what was asked for.
    lies: bool,
}

struct Request {
    method: String,
    path: String,
    authorization: String,
    body: Vec<u8>,
}

fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let header = |name: &str| {
        let line =
            head.lines().find_map(|line| line.split_once(": ").filter(|(key, _)| key.eq_ignore_ascii_case(name)));
        line.map(|(_, value)| value.to_owned()).unwrap_or_default()
    };
    let length: usize = header("content-length").parse().unwrap_or(0);
    let mut body = bytes[end + 4..].to_vec();
    while body.len() < length {
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        body.extend_from_slice(&buffer[..count]);
    }
    let mut words = head.lines().next()?.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    Some(Request { method, path, authorization: header("authorization"), body })
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

impl Registry {
    fn is_busy(&mut self) -> bool {
        let is_busy = self.busy > 0;
        self.busy = self.busy.saturating_sub(1);
        is_busy
    }

    /// Status, headers and body.
    fn answer(&mut self, request: Request, port: u16) -> (&'static str, String, Vec<u8>) {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        self.requests.push(format!("{} {path}", request.method));
        if path == "/token" {
            // `ada:secret`
            let given = request.authorization == "Basic YWRhOnNlY3JldA=="
                && query.contains("scope=repository%3Ateam%2Fsnapshots");
            return if given {
                ("200 OK", String::new(), b"{\"token\": \"t0ken\"}".to_vec())
            } else {
                ("401 Unauthorized", String::new(), Vec::new())
            };
        }
        if request.authorization != "Bearer t0ken" {
            let realm =
                format!("WWW-Authenticate: Bearer realm=\"http://127.0.0.1:{port}/token\",service=\"here\"\r\n");
            return ("401 Unauthorized", realm, Vec::new());
        }
        let below = path.strip_prefix("/v2/team/snapshots").unwrap();
        match (request.method.as_str(), below) {
            ("POST", "/blobs/uploads/") => {
                ("202 Accepted", "Location: /v2/team/snapshots/blobs/uploads/1?state=a\r\n".to_owned(), Vec::new())
            }
            ("PUT", "/blobs/uploads/1") => {
                let wanted = query.split('&').find_map(|it| it.strip_prefix("digest=")).unwrap().replace("%3A", ":");
                assert_eq!(digest(&request.body), wanted);
                self.blobs.insert(wanted, request.body);
                ("201 Created", String::new(), Vec::new())
            }
            ("PUT", tag) => {
                self.manifests.insert(tag.strip_prefix("/manifests/").unwrap().to_owned(), request.body);
                ("201 Created", String::new(), Vec::new())
            }
            (_, path) => match path.strip_prefix("/manifests/").map(|tag| self.manifests.get(tag)) {
                Some(Some(manifest)) => ("200 OK", String::new(), manifest.clone()),
                Some(None) => (
                    "404 Not Found",
                    String::new(),
                    b"{\"errors\": [{\"code\": \"MANIFEST_UNKNOWN\", \"message\": \"manifest unknown\"}]}".to_vec(),
                ),
                None => {
                    let mut content = self.blobs[path.strip_prefix("/blobs/").unwrap()].clone();
                    if self.lies {
                        content.push(b'x');
                    }
                    ("200 OK", String::new(), content)
                }
            },
        }
    }
}

fn serve() -> (u16, Arc<Mutex<Registry>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let registry = Arc::new(Mutex::new(Registry::default()));
    let state = registry.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let Some(request) = read(&mut stream) else { continue };
            if state.lock().unwrap().is_busy() {
                let busy = "HTTP/1.1 503 x\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                let _gone = stream.write_all(busy.as_bytes());
                continue;
            }
            let (status, headers, body) = state.lock().unwrap().answer(request, port);
            let head =
                format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _gone = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        }
    });
    (port, registry)
}

#[test]
fn a_registry_keeps_and_gives_a_snapshot() {
    let (port, registry) = serve();
    let folder = laid_out(&root().join("a-change"));
    std::fs::write(folder.path().join("credentials"), "ada:secret\n").unwrap();
    std::fs::write(folder.path().join("wrong"), "ada:other\n").unwrap();
    let place = format!("oci://127.0.0.1:{port}/team/snapshots:blue");
    let keep = |credentials: &str| {
        cutlist(
            folder.path(),
            [
                "snapshot",
                "--from",
                "clusters/blue.yaml",
                "--to",
                &place,
                "--name",
                "blue",
                "--credentials-file",
                credentials,
            ],
        )
    };
    let refused = keep("wrong");
    assert!(
        refused.code == 1 && refused.stderr.contains("credentials") && !refused.stderr.contains("other"),
        "{}",
        refused.transcript()
    );
    registry.lock().unwrap().requests.clear();
    let kept = keep("credentials");
    assert!(kept.code == 0 && kept.stderr.contains("as sha256:"), "{}", kept.transcript());
    // Five, and the two that it takes to be let in.
    assert_eq!(registry.lock().unwrap().requests.len(), 7, "{:?}", registry.lock().unwrap().requests);
    let preview = |cluster: &str| {
        let arguments = [&MERGE[..], &["--now", NOW, "--without-simulation", "-o", "json"]].concat();
        cutlist(folder.path(), arguments.into_iter().chain(["--credentials-file", "credentials", "--cluster", cluster]))
    };
    let decided = |text: &str| -> serde_json::Value {
        let document: serde_json::Value = serde_json::from_str(text).unwrap();
        document["targets"][0]["plan"]["digest"].clone()
    };
    registry.lock().unwrap().busy = 2;
    let of_registry = preview(&format!("blue={place}"));
    assert_eq!(of_registry.code, 0, "{}", of_registry.transcript());
    assert_eq!(decided(&of_registry.stdout), decided(&preview("blue=clusters/blue.yaml").stdout));
    let absent = preview(&format!("blue={}", place.replace(":blue", ":green")));
    assert!(absent.code == 1 && absent.stdout.contains("manifest unknown"), "{}", absent.transcript());
    registry.lock().unwrap().lies = true;
    let false_content = preview(&format!("blue={place}"));
    assert!(false_content.code == 1 && false_content.stdout.contains("should have"), "{}", false_content.transcript());
}
