//! What each forge answers, after its description.

mod gitea;
mod github;
mod gitlab;

use super::server::{OURS, READER, Router};

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

/// The account of a token.
fn account(token: &str, bot: &str) -> Option<String> {
    match token {
        OURS => Some(bot.to_owned()),
        READER => Some("reader".to_owned()),
        token if token.starts_with("made-by-the-app-") => Some(bot.to_owned()),
        _ => None,
    }
}
