//! A forge of ours on loopback: it has state, does harm when it is told to, and keeps what it was asked. What differs between forges is
//! in `forges/`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

/// Whose tokens the server knows.
pub const OURS: &str = "token-of-the-bot-8c1f";
pub const READER: &str = "token-of-a-reader-11aa";

#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// Without the query.
    pub path: String,
    pub query: BTreeMap<String, String>,
    pub headers: BTreeMap<String, String>,
    pub body: Value,
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Answer {
    pub fn of(status: u16, body: Value) -> Self {
        Self { status, headers: Vec::new(), body }
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

#[derive(Clone, Debug)]
pub enum Harm {
    /// Instead of what was asked for.
    Answer(Answer),
    /// Nothing is done, and the connection is cut.
    CutBefore,
    /// It is done, and the connection is cut.
    CutAfter,
}

/// Harm to the next so many requests of a method whose path has a part.
#[derive(Clone, Debug)]
pub struct Fault {
    pub method: &'static str,
    pub part: &'static str,
    pub times: u32,
    pub harm: Harm,
}

#[derive(Clone, Debug)]
pub struct Comment {
    pub id: u64,
    pub author: String,
    pub body: String,
    pub edits: u32,
    pub is_hidden: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub commit: String,
    pub context: String,
    pub state: String,
    pub description: String,
    /// Who set it, and when: seconds, in which comments are counted as well.
    pub by: String,
    pub at: u64,
}

#[derive(Default)]
pub struct World {
    pub comments: Vec<Comment>,
    pub statuses: Vec<Status>,
    pub checks: Vec<Value>,
    pub requests: Vec<Request>,
    pub faults: Vec<Fault>,
    pub pull_requests: Vec<Value>,
    /// Comments that were changed after they were written.
    pub edited: std::collections::BTreeSet<u64>,
    /// Comments to which somebody reacted; of one forge that looks like a change of the comment.
    pub reacted: std::collections::BTreeSet<u64>,
    pub last_id: u64,
    /// Author and committer of each commit of pull request 7, `None` for an address that is nobody's; none listed: one by its author.
    pub commits: Vec<[Option<&'static str>; 2]>,
    /// Who pushed to it beside its author.
    pub pushers: Vec<&'static str>,
    /// The commit that pull request 7 is at, where none is in the list above; a test may hold it.
    pub head: String,
    pub is_head_held: bool,
    /// The merge that the forge made to try it.
    pub tried_as: Option<String>,
    /// And whether it was closed, or its conversation locked.
    pub is_closed: bool,
    pub is_locked: bool,
    /// Who is in the team acme/platform, which may be one that this account does not see.
    pub team: std::collections::BTreeSet<String>,
    pub hides_team: bool,
    /// Keys of an App that may make tokens, and tokens that were made.
    pub app_keys: Vec<Vec<u8>>,
    pub tokens_made: u32,
}

impl World {
    pub fn id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub fn comment_by(&mut self, author: &str, body: &str) -> u64 {
        let id = self.id();
        self.comments.push(Comment {
            id,
            author: author.to_owned(),
            body: body.to_owned(),
            edits: 0,
            is_hidden: false,
        });
        id
    }

    pub fn comments_by(&self, author: &str) -> Vec<&Comment> {
        self.comments.iter().filter(|it| it.author == author && !it.is_hidden).collect()
    }

    /// Author and committer of each commit of pull request 7.
    pub fn makers(&self) -> Vec<[Option<&'static str>; 2]> {
        if self.commits.is_empty() { vec![[Some("author"); 2]] } else { self.commits.clone() }
    }

    pub fn is_edited(&self, comment: &Comment) -> bool {
        comment.edits > 0 || self.edited.contains(&comment.id)
    }

    /// When it was written and changed.
    pub fn moments(&self, comment: &Comment) -> [Value; 2] {
        let created = moment(comment.id);
        let updated = if self.is_edited(comment) { json!("t1") } else { created.clone() };
        [created, updated]
    }

    /// All statuses of a commit, the newest first.
    pub fn all_of<'a>(&'a self, commit: &'a str) -> impl Iterator<Item = &'a Status> {
        self.statuses.iter().rev().filter(move |it| it.commit == commit)
    }

    /// The newest of a commit.
    pub fn status_of(&self, commit: &str) -> Option<&Status> {
        self.statuses.iter().rev().find(|it| it.commit == commit)
    }

    /// Requests that change something, in their order.
    pub fn writes(&self) -> Vec<&Request> {
        let is_query = |it: &Request| it.body["query"].as_str().is_some_and(|text| text.starts_with("query"));
        self.requests.iter().filter(|it| it.method != "GET" && !is_query(it)).collect()
    }
}

/// So many seconds after the forge was begun.
pub fn moment(seconds: u64) -> Value {
    json!(jiff::Timestamp::from_second(1_700_000_000 + i64::try_from(seconds).unwrap()).unwrap())
}

/// Answers what one forge is asked; `None`: there is no such path.
pub type Router = fn(&mut World, &Request) -> Option<Answer>;

#[derive(Clone)]
pub struct Server {
    pub url: String,
    world: Arc<Mutex<World>>,
}

impl Server {
    pub fn start(router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let world = Arc::new(Mutex::new(World::default()));
        let shared = world.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let world = shared.clone();
                std::thread::spawn(move || serve(&world, router, &stream));
            }
        });
        Self { url, world }
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// Somebody pushed, and pull request 7 is at this commit.
    pub fn pushed(&self, head: &str) {
        let mut world = self.world();
        if !world.is_head_held {
            world.head = head.to_owned();
        }
    }

    pub fn harm(&self, method: &'static str, part: &'static str, times: u32, harm: Harm) {
        self.world().faults.push(Fault { method, part, times, harm });
    }
}

/// One request for each connection.
fn serve(world: &Mutex<World>, router: Router, stream: &TcpStream) -> Option<()> {
    let request = read(stream)?;
    let harm = {
        let mut world = world.lock().unwrap();
        world.requests.push(request.clone());
        let hit =
            |fault: &&mut Fault| fault.times > 0 && fault.method == request.method && request.path.contains(fault.part);
        world.faults.iter_mut().find(hit).map(|fault| {
            fault.times -= 1;
            fault.harm.clone()
        })
    };
    let answer = match harm {
        Some(Harm::CutBefore) => return None,
        Some(Harm::Answer(answer)) => answer,
        harm => {
            let answer = router(&mut world.lock().unwrap(), &request);
            if let Some(Harm::CutAfter) = harm {
                return None;
            }
            answer.unwrap_or_else(|| Answer::of(404, json!({ "message": "Not Found" })))
        }
    };
    let body = if [204, 304].contains(&answer.status) { String::new() } else { answer.body.to_string() };
    let headers: String = answer.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!(
        "HTTP/1.1 {} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n",
        answer.status,
        body.len()
    );
    let mut stream = stream;
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let query =
        query.split('&').filter_map(|pair| pair.split_once('=')).map(|(name, value)| (name.to_owned(), decoded(value)));
    Some(Request {
        method,
        path: path.to_owned(),
        query: query.collect(),
        headers,
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    })
}

pub fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into_owned()
}

/// One page of a list, with the link to the next.
pub fn page(items: Vec<Value>, request: &Request, size: &str, most: usize) -> (Vec<Value>, Option<String>) {
    let number = |name: &str| request.query.get(name).and_then(|it| it.parse::<usize>().ok());
    let (page, size) = (number("page").unwrap_or(1), number(size).unwrap_or(30).min(most));
    let is_last = page * size >= items.len();
    let link = (!is_last).then(|| format!("<http://x{}?page={}>; rel=\"next\"", request.path, page + 1));
    (items.into_iter().skip((page - 1) * size).take(size).collect(), link)
}

/// A list as an answer.
pub fn listed(items: Vec<Value>, request: &Request, size: &str, most: usize) -> Answer {
    let (items, link) = page(items, request, size, most);
    let answer = Answer::of(200, Value::Array(items));
    match link {
        Some(link) => answer.with("link", &link),
        None => answer,
    }
}

/// The pull requests in the state that was asked for, with a tag.
pub fn pull_requests(world: &World, request: &Request) -> Answer {
    let asked = request.query.get("state").map(String::as_str).unwrap_or_default();
    let is_asked_for = |it: &&Value| it["state"] == asked;
    let found: Vec<Value> = world.pull_requests.iter().filter(is_asked_for).cloned().collect();
    let tag = format!("W/\"{:x}-{}\"", world.last_id, found.len());
    if request.headers.get("if-none-match") == Some(&tag) {
        return Answer::of(304, Value::Null);
    }
    Answer::of(200, Value::Array(found)).with("etag", &tag)
}

/// Pull request 7, with as many comments as there are.
pub fn pull_request(world: &World) -> Option<Answer> {
    let of_both = json!({
        "number": 7, "iid": 7, "state": if world.is_closed { "closed" } else { "open" }, "user": { "login": "author" }, "author": { "username": "author" },
        "updated_at": "t1", "head": { "sha": world.head, "ref": "change", "repo": { "id": 2, "full_name": "author/fork" }, "repo_id": 2 },
        "base": { "ref": "main", "sha": "x", "repo": { "id": 1 }, "repo_id": 1 }, "merged_at": null,
        "merge_commit_sha": world.tried_as, "sha": world.head, "source_branch": "change", "target_branch": "main",
        "source_project_id": 2, "target_project_id": 1,
    });
    let mut shown = world.pull_requests.first().cloned().unwrap_or(of_both);
    shown["comments"] = json!(world.comments.len());
    shown["user_notes_count"] = json!(world.comments.len());
    for name in ["locked", "is_locked", "discussion_locked"] {
        shown[name] = json!(world.is_locked);
    }
    Some(Answer::of(200, shown))
}

/// The commits of pull request 7 as GitHub and Gitea list them.
pub fn commits(world: &World) -> Vec<Value> {
    let person = |name: Option<&str>| name.map_or(Value::Null, |name| json!({ "login": name }));
    let address = |name: Option<&str>| json!({ "email": format!("{}@example.com", name.unwrap_or("stranger")) });
    let commit = |[author, committer]: [Option<&str>; 2]| {
        json!({ "sha": "c0ffee0000", "author": person(author), "committer": person(committer),
                "commit": { "author": address(author), "committer": address(committer) } })
    };
    world.makers().into_iter().map(commit).collect()
}

/// The newest status of each context of a commit.
pub fn newest<'a>(world: &'a World, commit: &str) -> Vec<&'a Status> {
    let mut newest: Vec<&Status> = Vec::new();
    for status in world.statuses.iter().rev().filter(|it| it.commit == commit) {
        if newest.iter().all(|it| it.context != status.context) {
            newest.push(status);
        }
    }
    newest
}
