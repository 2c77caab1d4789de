//! Who made the commits of a pull request: of two people who are asked for, nobody is both.
//!
//! A commit's author and committer are what somebody wrote into it, as addresses, which the forge has accounts for or not. Who pushed is
//! what the forge saw itself.

use hyper::StatusCode;
use serde_json::Value;

use super::dialect::{MadeCommit, Maker, PullRequest, text};
use super::hosted::{ForgeError, HostedRepository, PAGES_MAX, has_next};
use crate::ports::pull_requests::Makers;

impl Makers {
    fn add(&mut self, made: MadeCommit) {
        for maker in made.makers {
            match maker {
                Maker::Account(account) => drop(self.accounts.insert(account)),
                Maker::Stranger(address) => {
                    self.stranger.get_or_insert_with(|| (made.commit.clone(), address));
                }
                Maker::Forge => {}
            }
        }
    }
}

impl HostedRepository {
    /// Who made the commits of a pull request. What this account is not told is part of the answer.
    pub async fn makers(&self, pull_request: &PullRequest) -> Result<Makers, ForgeError> {
        let mut makers = Makers::default();
        let mut listed = 0;
        for page in 1..=PAGES_MAX {
            let answer = match self.ask(&self.dialect.commits(pull_request.number, page)).await {
                Err(error) if is_not_told(&error) => {
                    makers.not_told = Some(self.not_told("which commits are in it", &error));
                    return Ok(makers);
                }
                answer => answer?,
            };
            let made = self.dialect.read_commits(&answer.body);
            let made = made.ok_or(ForgeError::Answer("the commits of a pull request"))?;
            listed += made.len();
            made.into_iter().for_each(|made| makers.add(made));
            if !has_next(&answer) {
                break;
            }
        }
        if listed == 0 || listed >= self.dialect.commits_max() {
            makers.not_told =
                Some("the forge does not list all commits of it: it has none, or more than are listed".to_owned());
        }
        match self.pushers(pull_request).await {
            Ok(Pushers::Told(pushers)) => makers.accounts.extend(pushers),
            Ok(Pushers::NotTold(why)) => {
                makers.pushers_not_told = Some(format!("{why}; {OPERATOR_MAY}"));
            }
            // Also a forge that is too old for the question: what nobody asked nobody knows.
            Err(error) if is_not_told(&error) => {
                let why = self.not_told("who pushed to it", &error);
                makers.pushers_not_told = Some(format!("{why}; {OPERATOR_MAY}"));
            }
            Err(error) => return Err(error),
        }
        Ok(makers)
    }

    async fn pushers(&self, pull_request: &PullRequest) -> Result<Pushers, ForgeError> {
        let mut pushers = Vec::new();
        for page in 1..=PAGES_MAX {
            let Some(request) = self.dialect.pushes(pull_request, page) else {
                let why = if page == 1 { "the repository that it is from is not seen" } else { MORE_PUSHES };
                return Ok(Pushers::NotTold(format!("who pushed to it is not told: {why}")));
            };
            let answer = self.ask(&request).await?;
            // An empty list is `null` in the words of some.
            if !answer.body.is_array() && !answer.body.is_null() {
                return Err(ForgeError::Answer("who pushed to a pull request"));
            }
            let items = answer.body.as_array().into_iter().flatten();
            for pusher in items.filter_map(|item| self.dialect.read_pusher(item)) {
                // A deploy key, or an account that is gone.
                if pusher.is_empty() {
                    return Ok(Pushers::NotTold("the forge has no account for who pushed some of it".to_owned()));
                }
                pushers.push(pusher);
            }
            if !has_next(&answer) {
                return Ok(Pushers::Told(pushers));
            }
        }
        Ok(Pushers::NotTold(format!("who pushed to it is not told: {MORE_PUSHES}")))
    }

    fn not_told(&self, what: &str, error: &ForgeError) -> String {
        let status =
            error.status().map_or_else(String::new, |status| format!(" (the forge answered {})", status.as_u16()));
        format!("{what} is not told to this account{status}: {}", self.dialect.makers_need())
    }
}

/// Who pushed to a pull request.
enum Pushers {
    Told(Vec<String>),
    NotTold(String),
}

const MORE_PUSHES: &str = "there were more pushes than are listed";
/// What whoever runs this program can do about it.
const OPERATOR_MAY: &str = "--allow-unknown-pushers takes approvals all the same";

fn is_not_told(error: &ForgeError) -> bool {
    error.is_denied() || error.status() == Some(StatusCode::NOT_FOUND)
}

/// Commits as GitHub and Gitea list them. `forge`: the account by which the forge commits what people edit on its pages.
pub(super) fn read_commits(answer: &Value, forge: &str) -> Option<Vec<MadeCommit>> {
    let maker = |item: &Value, role: &str| match item[role]["login"].as_str() {
        Some(login) if login == forge && role == "committer" => Maker::Forge,
        Some(login) if !login.is_empty() => Maker::Account(login.to_owned()),
        _ => Maker::Stranger(text(&item["commit"][role]["email"])),
    };
    let made = |item: &Value| {
        let makers = ["author", "committer"].map(|role| maker(item, role)).to_vec();
        Some(MadeCommit { commit: item["sha"].as_str()?.to_owned(), makers })
    };
    answer.as_array()?.iter().map(made).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(commits: &Value) -> Makers {
        let mut makers = Makers::default();
        read_commits(commits, "web-flow").unwrap().into_iter().for_each(|made| makers.add(made));
        makers
    }

    #[test]
    fn who_wrote_or_committed_is_a_maker_and_who_is_not_known_may_be_one() {
        let commit = |author: Value, committer: Value| {
            json!({ "sha": "0123456789", "author": author, "committer": committer,
                    "commit": { "author": { "email": "a@example.com" }, "committer": { "email": "b@example.com" } } })
        };
        let [eve, bob, page] = ["eve", "Bob", "web-flow"].map(|login| json!({ "login": login }));
        let of_both = of(&json!([commit(eve.clone(), bob), commit(eve.clone(), page.clone())]));
        assert!(of_both.refusal("EVE", true).is_some() && of_both.refusal("bob", true).is_some());
        assert_eq!(of_both.refusal("ada", false), None);
        let open = Makers { pushers_not_told: Some("why".to_owned()), ..of_both };
        assert_eq!((open.refusal("ada", false).as_deref(), open.refusal("ada", true)), (Some("why"), None));
        assert!(open.refusal("eve", true).is_some(), "what is known counts");
        for (author, committer, address) in
            [(Value::Null, eve.clone(), "a@example.com"), (eve.clone(), json!({ "login": "" }), "b@example.com")]
        {
            let refusal = of(&json!([commit(author, committer)])).refusal("ada", true).unwrap();
            assert!(refusal.contains("0123456,") && refusal.contains(address), "{refusal}");
        }
        // Of an author nobody else answers for the account of the pages.
        assert!(of(&json!([commit(page, eve)])).refusal("web-flow", true).is_some());
        assert_eq!(read_commits(&json!([{}]), ""), None);
        assert_eq!(read_commits(&json!({ "message": "no" }), ""), None);
    }
}
