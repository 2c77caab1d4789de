//! Fetching in a process of its own. The library waits for a silent server without end, and nothing in this process could stop
//! it; a process can be ended. It ends by itself as well, should nobody be left to end it.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use git2::Oid;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::address::Address;
use super::fetch::{Earlier, FetchError, Looked, Target, fetch};
use crate::ports::{PortErrorKind, chain};

/// The command by which this program fetches for another process of it. Nobody types it.
pub const COMMAND: &str = "fetch-for-controller";

/// How long the other process may outlive its limit before it is ended from here.
const GRACE: Duration = Duration::from_secs(5);
/// How often it is looked whether the other side is silent.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes of a request, and of an answer: names and messages.
const BYTES_MAX: u64 = 1 << 20;

/// How long a fetch may take.
#[derive(Clone, Copy, Debug)]
pub struct FetchLimits {
    /// Without a sign of life: from the first connection on.
    pub silence: Duration,
    /// In all.
    pub whole: Duration,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self { silence: Duration::from_secs(30), whole: Duration::from_secs(120) }
    }
}

/// What is handed to the other process, on its standard input: the address may hold a password, and arguments are seen by all.
#[derive(Serialize, Deserialize)]
struct Request {
    url: String,
    reference: Option<String>,
    credentials_file: Option<PathBuf>,
    clone: PathBuf,
    known: Option<String>,
    earlier: Option<Earlier>,
    with_history: bool,
    listed: Option<String>,
    silence_milliseconds: u64,
    whole_milliseconds: u64,
}

#[derive(Serialize, Deserialize)]
enum ProcessAnswer {
    Found(Looked),
    Failed {
        kind: Kind,
        message: String,
        /// The remote is there, and has no commit.
        is_empty: bool,
    },
}

/// [`PortErrorKind`], as far as a fetch fails so.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum Kind {
    Temporary,
    NotFound,
    Denied,
    Permanent,
}

/// Why nothing was fetched.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct FetchFailed {
    pub kind: PortErrorKind,
    message: String,
    pub is_empty: bool,
}

impl FetchFailed {
    fn temporary(message: impl Into<String>) -> Self {
        Self { kind: PortErrorKind::Temporary, message: message.into(), is_empty: false }
    }

    fn unanswered(limit: Duration) -> Self {
        Self::temporary(silent(limit))
    }
}

fn silent(limit: Duration) -> String {
    format!("the server did not answer within {} seconds", limit.as_secs())
}

fn slow(limit: Duration) -> String {
    format!("the fetch took longer than {} seconds", limit.as_secs())
}

/// Has `program`, which is this one, fetch. It is ended when this is given up.
pub(super) async fn fetch_beside(
    program: &Path,
    url: &str,
    target: &Target,
    clone: &Path,
    known: Option<Oid>,
    limits: FetchLimits,
) -> Result<Looked, FetchFailed> {
    let request = Request {
        url: url.to_owned(),
        reference: target.reference.clone(),
        credentials_file: target.credentials_file.clone(),
        clone: clone.to_owned(),
        known: known.map(|known| known.to_string()),
        earlier: target.earlier.clone(),
        with_history: target.with_history,
        listed: target.listed.clone(),
        silence_milliseconds: milliseconds(limits.silence),
        whole_milliseconds: milliseconds(limits.whole),
    };
    let request = serde_json::to_vec(&request).map_err(|error| FetchFailed::temporary(error.to_string()))?;
    let answered = timeout(limits.whole + GRACE, run(program, request)).await;
    let answer = answered.map_err(|_| FetchFailed::unanswered(limits.whole))?;
    match answer.map_err(|error| FetchFailed::temporary(format!("the process that fetches fails: {error}")))? {
        ProcessAnswer::Found(looked) => Ok(looked),
        ProcessAnswer::Failed { kind, message, is_empty } => Err(FetchFailed {
            is_empty,
            kind: match kind {
                Kind::Temporary => PortErrorKind::Temporary,
                Kind::NotFound => PortErrorKind::NotFound,
                Kind::Denied => PortErrorKind::Denied,
                Kind::Permanent => PortErrorKind::Permanent,
            },
            message,
        }),
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The other process; ended when nobody waits for it any more.
struct Running(Arc<Mutex<Child>>);

impl Drop for Running {
    fn drop(&mut self) {
        let mut child = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _gone_already = child.kill();
        let _gone_already = child.wait();
    }
}

async fn run(program: &Path, request: Vec<u8>) -> std::io::Result<ProcessAnswer> {
    let mut child = Command::new(program)
        .arg(COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let running = Running(Arc::new(Mutex::new(child)));
    // A thread ends with the process at the other end of its pipes.
    let reading = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        if let Some(mut stdin) = stdin {
            stdin.write_all(&request)?;
        }
        if let Some(stdout) = stdout {
            stdout.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
        }
        if bytes.len() as u64 > BYTES_MAX {
            return Err(std::io::Error::other(format!("its answer has more than {BYTES_MAX} bytes")));
        }
        std::io::Result::Ok(bytes)
    });
    let bytes = reading.await.map_err(std::io::Error::other)??;
    drop(running);
    serde_json::from_slice(&bytes).map_err(|_| std::io::Error::other("it ends without an answer"))
}

/// What the other process does: reads a request from standard input, fetches, and answers on standard output.
pub fn serve() -> std::io::Result<()> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(BYTES_MAX).read_to_end(&mut bytes)?;
    let request: Request = serde_json::from_slice(&bytes).map_err(std::io::Error::other)?;
    let life = Life::watched(
        Duration::from_millis(request.silence_milliseconds),
        Duration::from_millis(request.whole_milliseconds),
    );
    answer(&fetch_requested(request, &life))
}

fn answer(answer: &ProcessAnswer) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, answer).map_err(std::io::Error::other)?;
    out.flush()
}

fn fetch_requested(request: Request, life: &Life) -> ProcessAnswer {
    let address = match Address::parse(&request.url) {
        Ok(address) => address,
        Err(error) => return ProcessAnswer::Failed { kind: Kind::Permanent, message: chain(&error), is_empty: false },
    };
    let Request { reference, credentials_file, earlier, with_history, listed, .. } = request;
    let target = Target { address, reference, credentials_file, earlier, with_history, listed };
    let known = request.known.and_then(|known| Oid::from_str(&known).ok());
    match fetch(&target, &request.clone, known, &|| life.moves()) {
        Ok(looked) => ProcessAnswer::Found(looked),
        Err(error) => ProcessAnswer::Failed {
            kind: match error.kind() {
                PortErrorKind::NotFound => Kind::NotFound,
                PortErrorKind::Denied | PortErrorKind::Refused => Kind::Denied,
                PortErrorKind::Permanent => Kind::Permanent,
                PortErrorKind::Temporary
                | PortErrorKind::Internal
                | PortErrorKind::Conflict
                | PortErrorKind::InsufficientCapacity => Kind::Temporary,
            },
            message: target.address.hide_in(&chain(&error)),
            is_empty: matches!(error, FetchError::Empty),
        },
    }
}

/// When the other side was heard last.
#[derive(Clone)]
struct Life {
    began: Instant,
    heard_milliseconds: Arc<AtomicU64>,
}

impl Life {
    /// Ends the process when a limit is reached.
    fn watched(silence: Duration, whole: Duration) -> Self {
        let life = Self { began: Instant::now(), heard_milliseconds: Arc::default() };
        let watched = life.clone();
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(LOOK);
                let heard = Duration::from_millis(watched.heard_milliseconds.load(Ordering::SeqCst));
                let age = watched.began.elapsed();
                let message = if age >= whole {
                    slow(whole)
                } else if age.saturating_sub(heard) >= silence {
                    silent(silence)
                } else {
                    continue;
                };
                end(&ProcessAnswer::Failed { kind: Kind::Temporary, message, is_empty: false });
            }
        });
        life
    }

    fn moves(&self) {
        self.heard_milliseconds.store(milliseconds(self.began.elapsed()), Ordering::SeqCst);
    }
}

#[expect(clippy::exit, reason = "the thread that waits for the server can not be ended otherwise")]
fn end(answer: &ProcessAnswer) -> ! {
    let _nobody_reads = self::answer(answer);
    std::process::exit(0)
}
