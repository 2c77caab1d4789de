//! Git over HTTP and over its own protocol, served by the `git` program on the loopback.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::fixture::clean;

/// How long a server may take to start, and a client to say something.
const PATIENCE: Duration = Duration::from_secs(10);

/// A small HTTP server that passes every request to `git http-backend`. Stops when it is dropped.
pub struct HttpServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    /// Repositories are below it.
    root: PathBuf,
    /// Value of the header `Authorization` that is asked for.
    authorization: Mutex<Option<String>>,
    requests: AtomicUsize,
    authorized: AtomicUsize,
    /// Bodies that asked for a part of the history only.
    shallow_requests: AtomicUsize,
    stopped: AtomicBool,
}

struct Request {
    method: String,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    }
}

impl HttpServer {
    pub fn start(root: &Path) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            root: root.to_owned(),
            authorization: Mutex::default(),
            requests: AtomicUsize::new(0),
            authorized: AtomicUsize::new(0),
            shallow_requests: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        });
        let own = shared.clone();
        let acceptor = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if own.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let shared = own.clone();
                // A client that goes away in the middle is no failure of the server.
                std::thread::spawn(move || stream.and_then(|stream| shared.serve(&stream)));
            }
        });
        Self { address, shared, acceptor: Some(acceptor) }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// From now on only with this header, `Basic ...`.
    pub fn require(&self, authorization: &str) {
        *self.shared.authorization.lock().unwrap() = Some(authorization.to_owned());
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Requests with credentials.
    pub fn authorized(&self) -> usize {
        self.shared.authorized.load(Ordering::SeqCst)
    }

    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }

    pub fn shallow_requests(&self) -> usize {
        self.shared.shallow_requests.load(Ordering::SeqCst)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the acceptor.
        drop(TcpStream::connect(self.address));
        if let Some(acceptor) = self.acceptor.take() {
            drop(acceptor.join());
        }
    }
}

impl Shared {
    /// Answers the requests of one connection until the client closes it.
    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut reader = BufReader::new(stream);
        let mut writer = stream;
        while let Some(request) = read_request(&mut reader)? {
            if self.stopped.load(Ordering::SeqCst) {
                break;
            }
            self.requests.fetch_add(1, Ordering::SeqCst);
            self.authorized.fetch_add(usize::from(!request.header("Authorization").is_empty()), Ordering::SeqCst);
            if request.body.windows(6).any(|window| window == b"deepen") {
                self.shallow_requests.fetch_add(1, Ordering::SeqCst);
            }
            let expected = self.authorization.lock().unwrap().clone();
            let answer = match expected {
                Some(expected) if request.header("Authorization") != expected => {
                    b"Status: 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"definitions\"\r\n\r\n".to_vec()
                }
                _ => self.backend(&request)?,
            };
            writer.write_all(&as_http(&answer))?;
        }
        Ok(())
    }

    fn backend(&self, request: &Request) -> std::io::Result<Vec<u8>> {
        let mut command = Command::new("git");
        let mut child = clean(&mut command, &self.root)
            .arg("http-backend")
            .env("GIT_PROJECT_ROOT", &self.root)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("PATH_INFO", &request.path)
            .env("QUERY_STRING", &request.query)
            .env("REQUEST_METHOD", &request.method)
            .env("CONTENT_TYPE", request.header("Content-Type"))
            .env("CONTENT_LENGTH", request.body.len().to_string())
            .env("HTTP_CONTENT_ENCODING", request.header("Content-Encoding"))
            .env("GIT_PROTOCOL", request.header("Git-Protocol"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        child.stdin.take().unwrap().write_all(&request.body)?;
        Ok(child.wait_with_output()?.stdout)
    }
}

fn read_request(reader: &mut impl BufRead) -> std::io::Result<Option<Request>> {
    let Some(first) = read_line(reader)? else { return Ok(None) };
    let mut words = first.split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request =
        Request { method, path: path.to_owned(), query: query.to_owned(), headers: Vec::new(), body: Vec::new() };
    while let Some(line) = read_line(reader)?.filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        request.headers.push((name.to_owned(), value.trim().to_owned()));
    }
    if request.header("Transfer-Encoding").eq_ignore_ascii_case("chunked") {
        while let Some(line) = read_line(reader)? {
            let length = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
            let mut chunk = vec![0; length];
            reader.read_exact(&mut chunk)?;
            request.body.extend(chunk);
            read_line(reader)?;
            if length == 0 {
                break;
            }
        }
    } else {
        let length = request.header("Content-Length").parse().unwrap_or(0);
        request.body = vec![0; length];
        reader.read_exact(&mut request.body)?;
    }
    Ok(Some(request))
}

fn read_line(reader: &mut impl BufRead) -> std::io::Result<Option<String>> {
    let mut line = String::new();
    let length = reader.read_line(&mut line)?;
    Ok((length > 0).then(|| line.trim_end().to_owned()))
}

/// Makes an answer of HTTP out of one of CGI. The length is stated: the client takes no end by closing.
fn as_http(answer: &[u8]) -> Vec<u8> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
    let (head, body) = end.map_or((answer, &[][..]), |end| (&answer[..end], &answer[end + 4..]));
    let head = String::from_utf8_lossy(head);
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let mut text = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", body.len());
    for line in head.lines().filter(|line| !line.is_empty() && !line.starts_with("Status: ")) {
        text += line;
        text += "\r\n";
    }
    let mut bytes = (text + "\r\n").into_bytes();
    bytes.extend(body);
    bytes
}

/// `git daemon`. Stops when it is dropped.
pub struct GitDaemon {
    port: u16,
    child: Child,
}

impl GitDaemon {
    pub fn start(root: &Path) -> Self {
        // The program itself: `git daemon` would start it as a child that outlives it.
        let output = Command::new("git").arg("--exec-path").output().unwrap();
        let program = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()).join("git-daemon");
        assert!(program.is_file(), "these tests need {}", program.display());
        // Between asking for a free port and using it another program may take it; then the next one is tried.
        for _ in 0..5 {
            let port = free_port();
            let child = clean(&mut Command::new(&program), root)
                .arg(format!("--port={port}"))
                .arg(format!("--base-path={}", root.display()))
                .args(["--listen=127.0.0.1", "--export-all", "--reuseaddr"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut daemon = Self { port, child };
            if daemon.answers() {
                return daemon;
            }
        }
        panic!("git daemon does not start");
    }

    pub fn url(&self, path: &str) -> String {
        format!("git://127.0.0.1:{}/{path}", self.port)
    }

    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    fn answers(&mut self) -> bool {
        let started = Instant::now();
        while started.elapsed() < PATIENCE && matches!(self.child.try_wait(), Ok(None)) {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }
}

impl Drop for GitDaemon {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A port of the loopback on which nothing listens.
pub fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// A server that sends everybody elsewhere.
pub struct Redirecting {
    address: SocketAddr,
    authorized: Arc<AtomicUsize>,
}

impl Redirecting {
    /// `location`: what stands before the path.
    pub fn start(location: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (location, authorized) = (location.to_owned(), Arc::new(AtomicUsize::new(0)));
        let seen = authorized.clone();
        // Ends with the test.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(&stream);
                if let Ok(Some(request)) = read_request(&mut reader) {
                    seen.fetch_add(usize::from(!request.header("Authorization").is_empty()), Ordering::SeqCst);
                    let target = format!("{location}{}?{}", request.path, request.query);
                    let answer = format!(
                        "HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    );
                    drop((&stream).write_all(answer.as_bytes()));
                }
            }
        });
        Self { address, authorized }
    }

    pub fn url(&self, scheme: &str, path: &str) -> String {
        format!("{scheme}{}/{path}", self.address)
    }

    pub fn authorized(&self) -> usize {
        self.authorized.load(Ordering::SeqCst)
    }
}

/// Accepts and says nothing, until it is told where to pass connections on.
pub struct Relay {
    address: SocketAddr,
    to: Arc<Mutex<Option<SocketAddr>>>,
    open: Arc<AtomicUsize>,
}

impl Relay {
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let relay = Self { address: listener.local_addr().unwrap(), to: Arc::default(), open: Arc::default() };
        let (to, open) = (relay.to.clone(), relay.open.clone());
        // Ends with the test.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (to, open) = (*to.lock().unwrap(), open.clone());
                open.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    match to {
                        Some(to) => drop(pass(&stream, to)),
                        // Until the other side hangs up.
                        None => drop(std::io::copy(&mut &stream, &mut std::io::sink())),
                    }
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        relay
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn pass_to(&self, to: SocketAddr) {
        *self.to.lock().unwrap() = Some(to);
    }

    /// Connections that nobody has closed; one that was closed just now is waited for.
    pub fn open_connections(&self) -> usize {
        std::thread::sleep(Duration::from_millis(50));
        self.open.load(Ordering::SeqCst)
    }
}

fn pass(from: &TcpStream, to: SocketAddr) -> std::io::Result<()> {
    let there = TcpStream::connect(to)?;
    let (back_from, back_to) = (there.try_clone()?, from.try_clone()?);
    let back = std::thread::spawn(move || {
        drop(std::io::copy(&mut &back_from, &mut &back_to));
        drop(back_to.shutdown(std::net::Shutdown::Both));
    });
    drop(std::io::copy(&mut &*from, &mut &there));
    drop(there.shutdown(std::net::Shutdown::Both));
    drop(back.join());
    Ok(())
}
