//! A Gitea on loopback, with its users and their tokens.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Everything of the people who take part; nobody else can reach the server.
const PASSWORD: &str = "correct-horse-battery";

pub struct Gitea {
    folder: TempDir,
    port: u16,
    server: Child,
}

impl Drop for Gitea {
    fn drop(&mut self) {
        let _ended = self.server.kill().and_then(|()| self.server.wait());
    }
}

impl Gitea {
    /// Takes some ten seconds, most of them for an empty database.
    pub fn start(programs: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        std::fs::write(folder.path().join("app.ini"), settings(folder.path(), &programs.join("gitea-module"), port))
            .unwrap();
        let program = programs.join("gitea");
        assert!(program.exists(), "tests/forge/build {} makes it", programs.display());
        run(&program, folder.path(), &["migrate"]);
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let server =
            command(&program, folder.path(), &["web"]).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let gitea = Self { folder, port, server };
        let begin = Instant::now();
        while gitea.ask("GET", "/api/healthz", "", &Value::Null).0 != 200 {
            assert!(begin.elapsed() < Duration::from_secs(60), "{}", gitea.log());
            std::thread::sleep(Duration::from_millis(100));
        }
        gitea
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// A user, and a token that may do all that the user may.
    pub fn user(&self, programs: &Path, name: &str) -> String {
        let program = programs.join("gitea");
        let email = format!("{name}@example.invalid");
        let create = [
            "admin",
            "user",
            "create",
            "--username",
            name,
            "--password",
            PASSWORD,
            "--email",
            &email,
            "--must-change-password=false",
        ];
        run(&program, self.folder.path(), &create);
        let token = [
            "admin",
            "user",
            "generate-access-token",
            "--username",
            name,
            "--token-name",
            "t",
            "--scopes",
            "all",
            "--raw",
        ];
        let printed = run(&program, self.folder.path(), &token);
        printed.lines().last().unwrap().trim().to_owned()
    }

    /// A call that must succeed.
    #[track_caller]
    pub fn call(&self, method: &str, path: &str, token: &str, body: &Value) -> Value {
        let (status, answer) = self.ask(method, path, token, body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        answer
    }

    /// Status and answer; 0 where there is none.
    pub fn ask(&self, method: &str, path: &str, token: &str, body: &Value) -> (u16, Value) {
        self.exchange(method, path, token, body).unwrap_or((0, Value::Null))
    }

    fn exchange(&self, method: &str, path: &str, token: &str, body: &Value) -> Option<(u16, Value)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        // Of this version an answer comes in one piece.
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:{}\r\nAuthorization: token {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        let head = if token.is_empty() { head.replace("Authorization: token \r\n", "") } else { head };
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(body.as_bytes()).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some((status, serde_json::from_str(body).unwrap_or_default()))
    }
}

fn command(program: &Path, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.arg("--config").arg(folder.join("app.ini")).args(arguments).current_dir(folder);
    command.env("HOME", folder).env("USER", "root").env("GITEA_WORK_DIR", folder).stdin(Stdio::null());
    command
}

fn run(program: &Path, folder: &Path, arguments: &[&str]) -> String {
    let output = command(program, folder, arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "gitea {arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn settings(folder: &Path, module: &Path, port: u16) -> String {
    let folder: PathBuf = folder.to_owned();
    format!(
        "APP_NAME = test
WORK_PATH = {folder}
RUN_USER = root
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {port}
ROOT_URL = http://127.0.0.1:{port}/
STATIC_ROOT_PATH = {module}
DISABLE_SSH = true
OFFLINE_MODE = true
LFS_START_SERVER = false
[database]
DB_TYPE = sqlite3
PATH = {folder}/gitea.db
[repository]
ROOT = {folder}/repositories
DEFAULT_BRANCH = main
[security]
INSTALL_LOCK = true
SECRET_KEY = for-this-test-alone
INTERNAL_TOKEN = eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJuYmYiOjE3MDAwMDAwMDB9.OiUlQTOxyeTQHNuRIBbuTTLSLyVaEUKT1ZsUhGUfGBk
[oauth2]
ENABLED = false
[webhook]
ALLOWED_HOST_LIST = loopback
[indexer]
ISSUE_INDEXER_TYPE = db
[service]
DISABLE_REGISTRATION = true
[mailer]
ENABLED = false
[actions]
ENABLED = false
[packages]
ENABLED = false
[log]
LEVEL = warn
",
        folder = folder.display(),
        module = module.display()
    )
}
