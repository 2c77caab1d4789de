//! What each forge answers, after its description.

mod gitea;
mod github;
mod gitlab;

use serde_json::{Value, json};

use super::server::{Answer, Comment, OURS, READER, Request, Router, World};

/// One of the forges: its name on the command line, its paths, and how a comment's author is called.
#[derive(Clone, Copy)]
pub struct Forge {
    pub name: &'static str,
    pub router: Router,
    pub bot: &'static str,
    pub comments: &'static str,
    pub statuses: &'static str,
    /// Where Git finds the head of pull request 7.
    pub head: &'static str,
    pub most_characters: usize,
}

pub const FORGES: [Forge; 3] = [GITHUB, GITEA, GITLAB];

pub const GITHUB: Forge = Forge {
    name: "github",
    router: github::answer,
    bot: "cutlist[bot]",
    comments: "/issues/7/comments",
    statuses: "/statuses/",
    head: "refs/pull/7/head",
    most_characters: 65_536,
};
pub const GITEA: Forge = Forge {
    name: "gitea",
    router: gitea::answer,
    bot: "cutlist-bot",
    comments: "/issues/7/comments",
    statuses: "/statuses/",
    head: "refs/pull/7/head",
    most_characters: 250_000,
};
pub const GITLAB: Forge = Forge {
    name: "gitlab",
    router: gitlab::answer,
    bot: "project_1_bot",
    comments: "/merge_requests/7/notes",
    statuses: "/statuses/",
    head: "refs/merge-requests/7/head",
    most_characters: 1_000_000,
};

/// What a user may do; nobody else may do anything.
fn may_write(user: &str) -> bool {
    user == "writer" || user == "author"
}

/// Something that is there, or nothing.
fn found(body: Option<Value>) -> Answer {
    body.map_or_else(|| Answer::of(404, json!({ "message": "Not Found" })), |body| Answer::of(200, body))
}

/// Edits or removes a comment, which its author alone may do: `refusal` is what others hear. `None`: there is none of that number.
fn change(
    world: &mut World,
    request: &Request,
    (id, account): (&str, &str),
    refusal: &str,
    shown: fn(&World, &Comment) -> Value,
) -> Option<Answer> {
    let id: u64 = id.parse().ok()?;
    let at = world.comments.iter().position(|it| it.id == id)?;
    if world.comments[at].author != account {
        return Some(Answer::of(403, json!({ "message": refusal })));
    }
    if request.method == "DELETE" {
        world.comments.remove(at);
        return Some(Answer::of(204, Value::Null));
    }
    world.comments[at].body = request.body["body"].as_str()?.to_owned();
    world.comments[at].edits += 1;
    Some(Answer::of(200, shown(world, &world.comments[at])))
}

/// The account of a token.
fn account(token: &str, bot: &str) -> Option<String> {
    match token {
        OURS => Some(bot.to_owned()),
        READER => Some("reader".to_owned()),
        token if token.starts_with("made-by-the-app-") => Some(bot.to_owned()),
        _ => None,
    }
}
