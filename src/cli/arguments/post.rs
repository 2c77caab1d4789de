//! `cutlist post`, and which forge: flags, and the variables that stand in for them.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueEnum};

use crate::api::duration::NillableDuration;
use crate::ports::pull_requests::{Manner, RepositoryName};

#[derive(Debug, Args)]
pub struct PostArguments {
    /// What `cutlist preview -o json` wrote; `-` reads stdin
    #[arg(value_name = "PREVIEW")]
    pub preview: PathBuf,
    #[command(flatten)]
    pub forge: ForgeArguments,
    /// Number of the pull request; default: that of the CI job
    #[arg(long, value_name = "NUMBER", env = "CUTLIST_PULL_REQUEST")]
    pub pull_request: Option<u64>,
    /// Refuse a preview of another commit than this one
    #[arg(long, value_name = "COMMIT")]
    pub head: Option<String>,
    /// What becomes of the comment: edited where something changed, a new one with the old hidden, or none
    #[arg(long, value_enum, default_value_t = CommentArgument::Edit, value_name = "MANNER")]
    pub comment: CommentArgument,
    /// Set the status and the check of the commit, and write no comment: for the commit of a merge queue, where a job of GitHub says by
    /// itself that it is one
    #[arg(long)]
    pub commit_only: bool,
    /// Set statuses only, and no checks with annotations
    #[arg(long)]
    pub no_checks: bool,
    /// The preview comes from a job that the author of the change can change, as on a fork: show its data, and nothing of its text; the
    /// status stays pending, whatever it claims
    #[arg(long, requires = "head")]
    pub untrusted: bool,
    /// Address of the job, for those who click on the status; default: that of the CI job
    #[arg(long, value_name = "URL")]
    pub details_url: Option<String>,
    /// Also append what is posted to this file, as Markdown, before anything is posted
    #[arg(long, value_name = "FILE", env = "GITHUB_STEP_SUMMARY")]
    pub summary_file: Option<PathBuf>,
    /// End well after the summary where there is no token, as in jobs of forks
    #[arg(long)]
    pub allow_no_token: bool,
    /// Print what would be posted; ask the forge nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Which repository on which forge, and how to prove who we are.
#[derive(Clone, Debug, Args)]
pub struct ForgeArguments {
    /// Where pull requests are; default: by the variables of the CI job, which `run` does not go by
    #[arg(long, value_enum, value_name = "FORGE", env = "CUTLIST_FORGE")]
    pub forge: Option<ForgeArgument>,
    /// Address of the forge; default: that of the CI job, else github.com or gitlab.com
    #[arg(long, value_name = "URL", env = "CUTLIST_FORGE_URL")]
    pub url: Option<String>,
    /// The repository; default: that of the CI job
    #[arg(long = "repository", value_name = "OWNER/NAME", env = "CUTLIST_FORGE_REPOSITORY")]
    pub forge_repository: Option<RepositoryName>,
    /// File that holds the token for the forge; read each time
    #[arg(long, value_name = "FILE", env = "CUTLIST_FORGE_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// Variable of the environment that holds the token
    #[arg(long, value_name = "NAME", default_value = "CUTLIST_FORGE_TOKEN", conflicts_with = "token_file")]
    pub token_variable: String,
    /// On GitHub: the client ID of an App, which makes its own tokens
    #[arg(
        long,
        value_name = "ID",
        env = "CUTLIST_FORGE_APP_ID",
        requires = "app_key_file",
        conflicts_with = "token_file"
    )]
    pub app_id: Option<String>,
    /// File that holds the App's private key, in PEM
    #[arg(long, value_name = "FILE", env = "CUTLIST_FORGE_APP_KEY_FILE", requires = "app_id")]
    pub app_key_file: Option<PathBuf>,
    /// Names statuses, and tells apart what several installations post to one repository
    #[arg(long = "name", value_name = "NAME", default_value = "cutlist", value_parser = name)]
    pub forge_name: String,
    /// Send the token without encryption to another machine, as within a cluster
    #[arg(long, env = "CUTLIST_FORGE_ALLOW_PLAIN_HTTP", value_parser = FalseyValueParser::new())]
    pub allow_plain_http: bool,
    /// How long to wait for a forge that limits its rate or is away
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub max_wait: NillableDuration,
}

fn name(text: &str) -> Result<String, String> {
    let fits = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
    if !text.is_empty() && text.len() <= 40 && text.chars().all(fits) {
        return Ok(text.to_owned());
    }
    Err("write up to 40 letters, digits, `-`, `_` and `.`".to_owned())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ForgeArgument {
    Github,
    /// Forgejo as well
    #[value(alias = "forgejo")]
    Gitea,
    Gitlab,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CommentArgument {
    Edit,
    New,
    None,
}

impl CommentArgument {
    /// What becomes of the comment of an earlier revision; `None`: comments are not wanted.
    pub const fn manner(self) -> Option<Manner> {
        match self {
            Self::Edit => Some(Manner::Edit),
            Self::New => Some(Manner::Anew),
            Self::None => None,
        }
    }
}
