//! Which forge, which repository and which credentials: flags first, then our variables, then those of the CI job.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use serde_json::Value;

use crate::adapters::forge::{
    Access, Address, AddressError, ForgeError, ForgeKind, HostedRepository, HttpError, JobContext, Secret,
    SecretSource, Variables, found_by_variables, hosted,
};
use crate::adapters::system_clock::SystemClock;
use crate::cli::arguments::{ForgeArgument, ForgeArguments};
use crate::cli::exit::Failure;
use crate::ports::Clock;
use crate::ports::pull_requests::{RepositoryName, Table};

/// What the arguments come to.
pub struct Resolved {
    pub kind: ForgeKind,
    pub address: Address,
    pub repository: RepositoryName,
    pub access: Access,
    pub found: JobContext,
    waiting_at_most: Duration,
}

pub fn resolve(arguments: &ForgeArguments, link: Option<&str>) -> Result<Resolved, Failure> {
    let variables = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let by_variables = found_by_variables(&variables);
    let asked = arguments.forge.map(|forge| match forge {
        ForgeArgument::Github => ForgeKind::GitHub,
        ForgeArgument::Gitea => ForgeKind::Gitea,
        ForgeArgument::Gitlab => ForgeKind::GitLab,
    });
    let kind = asked.or(by_variables.as_ref().map(|(kind, _)| *kind)).ok_or_else(|| {
        Failure::usage(anyhow!("nothing says which forge to post to"))
            .with_hint("add --forge github, gitea or gitlab, with --url, --repository and --token-file")
    })?;
    let mut found = by_variables.filter(|(of, _)| *of == kind).map(|(_, found)| found).unwrap_or_default();
    let event = event_of_job(&variables);
    found.pull_request =
        found.pull_request.or_else(|| event_number(event.as_ref()?)).or_else(|| number_of_job(&variables));
    let head = event.as_ref().and_then(|event| event["pull_request"]["head"]["sha"].as_str());
    found.head = found.head.or_else(|| head.map(str::to_owned));
    if let Some((head, tried)) = merge_of_job(&variables) {
        found.head.get_or_insert(head);
        found.tried_merge.get_or_insert(tried);
    }
    if let Some(link) = link {
        found.link = Some(link.to_owned());
    }
    let url = arguments.url.clone().or_else(|| found.url.clone()).or_else(|| kind.usual_url().map(str::to_owned));
    let url =
        url.ok_or_else(|| Failure::usage(anyhow!("nothing says where the forge is")).with_hint("add --url URL"))?;
    let address = Address::parse(&url, arguments.allow_plain_http).map_err(|error| {
        let is_plain = matches!(error, AddressError::NotEncrypted(_));
        let failure = Failure::usage(error);
        if is_plain {
            failure.with_hint("add --allow-plain-http where nobody else is on the way, as within a cluster")
        } else {
            failure
        }
    })?;
    let repository = match (&arguments.forge_repository, &found.repository) {
        (Some(repository), _) => repository.clone(),
        (None, Some(text)) => text.parse().map_err(|error: String| Failure::usage(anyhow!("{text}: {error}")))?,
        (None, None) => {
            return Err(Failure::usage(anyhow!("nothing says which repository to post to"))
                .with_hint("add --repository OWNER/NAME"));
        }
    };
    if kind != ForgeKind::GitLab && repository.owner.contains('/') {
        return Err(Failure::usage(anyhow!("{repository} is no repository of this forge: write OWNER/NAME")));
    }
    let waiting_at_most = arguments.max_wait.seconds().map_or(Duration::MAX, Duration::from_secs);
    Ok(Resolved { kind, address, repository, access: access(arguments), found, waiting_at_most })
}

/// An event with its pull request in it is smaller.
const EVENT_BYTES_MAX: u64 = 16 << 20;

/// What a job of GitHub's, Gitea's or Forgejo's Actions runs for.
fn event_of_job(variable: Variables<'_>) -> Option<Value> {
    let mut text = String::new();
    std::fs::File::open(variable("GITHUB_EVENT_PATH")?).ok()?.take(EVENT_BYTES_MAX).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// The pull request of an event, where the reference does not say it, as of `pull_request_target` and of comments.
fn event_number(event: &Value) -> Option<u64> {
    let of_comment = event["issue"].get("pull_request").map(|_| &event["issue"]["number"]);
    event["pull_request"]["number"].as_u64().or_else(|| of_comment?.as_u64())
}

/// What was pushed, and the merge that was checked out instead, on CI systems that tell both.
fn merge_of_job(variable: Variables<'_>) -> Option<(String, String)> {
    const PAIRS: [(&str, &str); 2] = [
        // Azure Pipelines
        ("SYSTEM_PULLREQUEST_SOURCECOMMITID", "BUILD_SOURCEVERSION"),
        ("TRAVIS_PULL_REQUEST_SHA", "TRAVIS_COMMIT"),
    ];
    let pair = |(pushed, checked_out): &(&str, &str)| Some((variable(pushed)?, variable(checked_out)?));
    PAIRS.iter().find_map(pair).filter(|(pushed, checked_out)| pushed != checked_out)
}

/// What other CI systems call the number of the pull request; all but one say it as it is, and some `false` where there is none.
fn number_of_job(variable: Variables<'_>) -> Option<u64> {
    const NUMBERS: [&str; 9] = [
        // Jenkins, of a multibranch pipeline
        "CHANGE_ID",
        "BUILDKITE_PULL_REQUEST",
        // CircleCI: the address of it
        "CIRCLE_PULL_REQUEST",
        // Azure Pipelines: of GitHub, and of Azure Repos
        "SYSTEM_PULLREQUEST_PULLREQUESTNUMBER",
        "SYSTEM_PULLREQUEST_PULLREQUESTID",
        // Woodpecker, and Drone, which it comes from
        "CI_COMMIT_PULL_REQUEST",
        "DRONE_PULL_REQUEST",
        "TRAVIS_PULL_REQUEST",
        "BITBUCKET_PR_ID",
    ];
    NUMBERS.iter().find_map(|name| variable(name)?.rsplit('/').next()?.parse().ok())
}

fn access(arguments: &ForgeArguments) -> Access {
    if let (Some(issuer), Some(key)) = (&arguments.app_id, &arguments.app_key_file) {
        return Access::Key { issuer: issuer.clone(), key: SecretSource::File(key.clone()) };
    }
    Access::Token(match &arguments.token_file {
        Some(path) => SecretSource::File(path.clone()),
        None => {
            let name = arguments.token_variable.clone();
            let value = std::env::var(&name).unwrap_or_default();
            SecretSource::Variable(name, Secret::new(value))
        }
    })
}

impl Resolved {
    pub fn table(&self) -> &'static Table {
        self.kind.table(&self.repository, &self.address)
    }

    pub fn clock() -> Arc<dyn Clock + Send + Sync> {
        Arc::new(SystemClock)
    }

    /// Whether there is something to prove with who we are.
    pub fn has_token(&self) -> bool {
        match &self.access {
            Access::Token(source) | Access::Key { key: source, .. } => source.read().is_ok(),
        }
    }

    pub fn connect(&self) -> Result<HostedRepository, Failure> {
        self.refuse_without_token()?;
        let (kind, address, repository) = (self.kind, &self.address, &self.repository);
        hosted(kind, address, repository, self.access.clone(), self.waiting_at_most, Self::clock())
            .map_err(Failure::failed)
    }

    fn refuse_without_token(&self) -> Result<(), Failure> {
        let (Access::Token(source) | Access::Key { key: source, .. }) = &self.access;
        source.read().map(drop).map_err(|error| {
            Failure::usage(error)
                .with_hint("add --token-file FILE, or put the token into the variable CUTLIST_FORGE_TOKEN")
        })
    }

    /// What somebody can do about a refusal.
    pub fn hint(&self, error: &ForgeError) -> Option<String> {
        if error.may_pass() {
            return Some("it may pass: run it again later, or let it wait longer with --max-wait".to_owned());
        }
        if matches!(error, ForgeError::Http(HttpError::Moved { .. })) {
            let (repository, address) = (&self.repository, &self.address);
            return Some(format!(
                "is {repository} still its name, and {address} still the API? give the one of today with --repository, or --url"
            ));
        }
        if matches!(error, ForgeError::Http(HttpError::Unreadable { .. })) {
            return Some(format!("is {} where the API is? this looks like a page for people", self.address));
        }
        if matches!(error, ForgeError::Locked { .. }) {
            return Some("where it is to stay locked, --comment none sets statuses alone".to_owned());
        }
        let status = error.status()?.as_u16();
        let hint = match status {
            401 => format!(
                "the forge does not know the credentials of {}: are they of this forge, and still good?",
                self.source()
            ),
            403 => format!(
                "what {} holds may not do this: it needs to read {}, to write its statuses and the comments of its pull requests, and to know whose it is (on Gitea `read:user`)",
                self.source(),
                self.repository
            ),
            404 => format!(
                "is {} at {} the right repository, may {} see it, and was the commit pushed?",
                self.repository,
                self.address,
                self.source()
            ),
            _ => return None,
        };
        Some(hint)
    }

    fn source(&self) -> &SecretSource {
        let (Access::Token(source) | Access::Key { key: source, .. }) = &self.access;
        source
    }
}
