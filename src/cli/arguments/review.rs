//! What is typed for `cutlist review`.

use std::path::PathBuf;

use clap::Args;

use super::{
    ClusterArguments, ClusterVariable, CommentArgument, DefinitionArguments, ForgeArguments, NamedPath,
    PackingArgument, SigningArguments,
};
use crate::api::duration::NillableDuration;
use crate::controller::reviews::ReviewRules;
use crate::ports::pull_requests::Team;

#[derive(Debug, Args)]
pub struct ReviewArguments {
    /// Address from which the repository can be fetched
    #[arg(value_name = "REPOSITORY")]
    pub remote: String,
    /// Folder of the repository that holds the definitions
    #[arg(long, value_name = "PATH")]
    pub sub_path: Option<String>,
    /// File that holds the token (or `user:password`) for fetching
    #[arg(long, value_name = "FILE")]
    pub credentials_file: Option<PathBuf>,
    /// How often open pull requests are asked for
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = super::interval)]
    pub interval: NillableDuration,
    /// Look once, and end
    #[arg(long)]
    pub once: bool,
    #[command(flatten)]
    pub forge: ForgeArguments,
    #[command(flatten)]
    pub manner: ReviewManner,
    /// A cluster, and where its snapshot is, as `preview` takes it; repeatable. Without: the living cluster
    #[arg(long = "cluster", value_name = "NAME=SNAPSHOT")]
    pub clusters: Vec<NamedPath>,
    /// Value for `${NAME}` in the definitions of one of these clusters; repeatable
    #[arg(long = "cluster-variable", value_name = "CLUSTER=NAME=VALUE")]
    pub cluster_variables: Vec<ClusterVariable>,
    #[command(flatten)]
    pub live: ClusterArguments,
    /// What comments and statuses call this set of definitions, where one cluster has several
    #[arg(long, value_name = "NAME", default_value = "")]
    pub environment: String,
    /// What EC2 sells, instead of the built-in catalog
    #[arg(long, value_name = "FILE")]
    pub catalog: Option<PathBuf>,
    /// How nodes are chosen, instead of what cutlist.yaml says
    #[arg(long, value_enum)]
    pub packing: Option<PackingArgument>,
    /// The same inputs and the same number give the same bytes
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    #[command(flatten)]
    pub definitions: DefinitionArguments,
    #[command(flatten, next_help_heading = "Signed commits")]
    pub signing: SigningArguments,
}

/// How pull requests are reviewed.
#[derive(Clone, Debug, Args)]
pub struct ReviewManner {
    /// What becomes of the comment on a pull request
    #[arg(long, value_enum, default_value_t = CommentArgument::Edit, value_name = "MANNER")]
    pub comment: CommentArgument,
    /// Set statuses only, and no checks with annotations
    #[arg(long)]
    pub no_checks: bool,
    /// Leave the next 24 hours out of previews
    #[arg(long)]
    pub without_simulation: bool,
    /// Also set a status that waits until somebody who may write says `/cutlist approve DIGEST`
    #[arg(long)]
    pub require_approval: bool,
    /// Take no approval from who opened the pull request, or made or pushed one of its commits
    #[arg(long)]
    pub require_two_people: bool,
    /// Take approvals of two people also where the forge does not tell who pushed to a pull request
    ///
    /// Without it such an approval does not count, and the answer says which right or version of the forge is missing. With it whoever pushed what
    /// somebody else wrote may approve it.
    #[arg(long, requires = "require_two_people")]
    pub allow_unknown_pushers: bool,
    /// A team whose members may approve and ask as those may who may write: `ORGANIZATION/TEAM`, on GitLab the path of a group; repeatable
    #[arg(long, value_name = "TEAM", value_delimiter = ',')]
    pub approvers: Vec<Team>,
    /// Take approvals from members of these teams, and from nobody else
    #[arg(long, requires = "approvers")]
    pub approvers_only: bool,
    /// Once a pull request is merged, approve its node plan in the cluster where it is the plan that was approved on the pull request
    ///
    /// This process approves in its own name, so it needs `patch` on nodeplans, and must not be the one that carries plans out.
    #[arg(long, requires = "require_approval")]
    pub approve_merged: bool,
    /// Receive webhooks here, at /hooks, which shorten the wait
    #[arg(long, value_name = "ADDRESS:PORT", requires = "hook_secret_file")]
    pub listen_hooks: Option<std::net::SocketAddr>,
    /// File that holds the secret of the webhooks
    #[arg(long, value_name = "FILE", requires = "listen_hooks")]
    pub hook_secret_file: Option<PathBuf>,
}

impl ReviewManner {
    pub fn rules(&self) -> ReviewRules {
        ReviewRules {
            require_approval: self.require_approval,
            require_two_people: self.require_two_people,
            allow_unknown_pushers: self.allow_unknown_pushers,
            approvers: self.approvers.clone(),
            approvers_only: self.approvers_only,
            approve_merged: self.approve_merged,
        }
    }
}
