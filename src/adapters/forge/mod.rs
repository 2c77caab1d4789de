//! Where people review plans.
//!
//! | what | where |
//! |---|---|
//! | requests, time limits, patience, credentials | `http/` |
//! | what one forge is asked, and how it answers; its limits | `github/`, `gitea/`, `gitlab/`, each a [`Dialect`] |
//! | who made the commits of a pull request | `makers.rs` |
//! | a repository: pages, tags, tokens, what a push made a moment ago | `hosted.rs` |
//! | statuses, comments and checks, each once | `posting.rs` |
//! | the port that reviews reach it by | `pull_requests.rs` |
//! | revisions of the controller that are not used | `unused_revisions.rs` |
//! | webhooks, which only shorten a wait | `hooks.rs` |

mod dialect;
mod gitea;
mod github;
mod gitlab;
mod hooks;
mod hosted;
mod http;
mod issues;
mod makers;
mod posting;
mod pull_requests;
mod seal;
mod unused_revisions;

use std::sync::Arc;
use std::time::Duration;

use crate::ports::Clock;

pub use dialect::{Access, Dialect, JobContext, Variables};
pub use hooks::{HookError, HookReceiver, HookSettings};
pub use hosted::{ForgeError, HostedRepository};
pub use http::{Address, AddressError, HttpError, Secret, SecretError, SecretSource};
pub use posting::post;
pub use seal::sealed;
pub use unused_revisions::{UnusedRevisions, Voice};

use dialect::{RepositoryName, Table};

/// The forges that are spoken with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgeKind {
    GitHub,
    Gitea,
    GitLab,
}

impl ForgeKind {
    /// Where it is when nobody says.
    pub fn usual_url(self) -> Option<&'static str> {
        match self {
            Self::GitHub => Some(github::GitHub::URL),
            Self::Gitea => None,
            Self::GitLab => Some(gitlab::GitLab::URL),
        }
    }

    fn dialect(self, repository: &RepositoryName, address: &Address) -> Box<dyn Dialect> {
        match self {
            Self::GitHub => Box::new(github::GitHub::new(repository, address)),
            Self::Gitea => Box::new(gitea::Gitea::new(repository)),
            Self::GitLab => Box::new(gitlab::GitLab::new(repository, address)),
        }
    }

    fn api(self, address: &Address) -> Address {
        match self {
            Self::GitHub => github::GitHub::api(address),
            Self::Gitea => gitea::Gitea::api(address),
            Self::GitLab => gitlab::GitLab::api(address),
        }
    }

    /// How much it takes.
    pub fn table(self, repository: &RepositoryName, address: &Address) -> &'static Table {
        self.dialect(repository, &self.api(address)).table()
    }
}

/// The CI system that this process is a job of, and what it says.
pub fn found_by_variables(variables: Variables<'_>) -> Option<(ForgeKind, JobContext)> {
    // Gitea's runners set GitHub's variables as well.
    gitea::found(variables)
        .map(|found| (ForgeKind::Gitea, found))
        .or_else(|| github::found(variables).map(|found| (ForgeKind::GitHub, found)))
        .or_else(|| gitlab::found(variables).map(|found| (ForgeKind::GitLab, found)))
}

/// A repository on a forge; nothing is asked yet.
pub fn hosted(
    kind: ForgeKind,
    address: &Address,
    repository: &RepositoryName,
    access: Access,
    waiting_at_most: Duration,
    clock: Arc<dyn Clock + Send + Sync>,
) -> Result<HostedRepository, HttpError> {
    let api = kind.api(address);
    let dialect = kind.dialect(repository, &api);
    let limits = http::Limits::default().waiting_at_most(waiting_at_most);
    let client = http::Client::new(api, limits, clock, dialect.headers())?;
    Ok(HostedRepository::new(client, dialect, access))
}
