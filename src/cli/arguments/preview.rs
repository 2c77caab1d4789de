//! What is typed for `cutlist preview`.

use std::path::PathBuf;

use clap::Args;

use super::{
    ClusterArguments, ClusterVariable, FormOutput, NamedPath, PlanOutput, PlanningArguments, ReviewManner,
    SigningArguments,
};

#[derive(Clone, Debug, Args)]
pub struct PreviewArguments {
    /// Clone or bare repository, or the folder in it that holds the definitions
    pub path: PathBuf,
    /// Commit, branch or tag that the change goes into
    #[arg(long, value_name = "REF")]
    pub base: String,
    /// Commit, branch or tag that is proposed; what is planned is the merge of it into the base
    #[arg(long, value_name = "REF", default_value = "HEAD")]
    pub head: String,
    /// What the comments, statuses and documents call this set of definitions, where one cluster has several
    #[arg(long, value_name = "NAME", default_value = "")]
    pub environment: String,
    /// A cluster, and where its snapshot is; repeatable, also for several files of one cluster
    ///
    /// A file as `plan --snapshot` takes it. A folder that `snapshot --to` writes: the newest in it. `git:BRANCH`: the newest on that
    /// branch of the repository of PATH. `oci://HOST/REPOSITORY:TAG`: an artifact of a registry.
    #[arg(long = "cluster", value_name = "NAME=SNAPSHOT")]
    pub clusters: Vec<NamedPath>,
    /// File that holds `user:password`, or a token, for the registry of snapshots
    #[arg(long, value_name = "FILE")]
    pub credentials_file: Option<PathBuf>,
    /// Folder below PATH that holds the definitions of this cluster, where they are not all of PATH
    #[arg(long = "definitions", value_name = "NAME=FOLDER")]
    pub folders: Vec<NamedPath>,
    /// Value for `${NAME}` in the definitions of one cluster, where it has another than `--variable` gives; repeatable
    #[arg(long = "cluster-variable", value_name = "CLUSTER=NAME=VALUE")]
    pub cluster_variables: Vec<ClusterVariable>,
    #[command(flatten)]
    pub live: ClusterArguments,
    /// The living cluster, also where nothing names it, as within a pod.
    #[arg(skip)]
    pub is_live: bool,
    #[command(flatten)]
    pub planning: PlanningArguments,
    /// Leave the next 24 hours out
    #[arg(long)]
    pub without_simulation: bool,
    /// How it is shown, and where: FORM or FORM=FILE; repeatable, and planned once. FORM is one of text, json, markdown
    #[arg(short, long, value_name = "FORM[=FILE]", default_value = "text")]
    pub output: Vec<FormOutput<PlanOutput>>,
    /// Exit with 2 when the change makes a difference to some cluster (0: to none, 1: no plan could be made)
    #[arg(long)]
    pub detailed_exitcode: bool,
    #[command(flatten, next_help_heading = "Signed commits")]
    pub signing: SigningArguments,
}

impl PreviewArguments {
    /// For pull requests, on the living cluster. Path and revisions are those of each.
    pub fn of_pull_requests(
        live: ClusterArguments,
        planning: PlanningArguments,
        manner: &ReviewManner,
        signing: &SigningArguments,
    ) -> Self {
        Self {
            path: PathBuf::new(),
            base: String::new(),
            head: String::new(),
            environment: String::new(),
            clusters: Vec::new(),
            credentials_file: None,
            folders: Vec::new(),
            cluster_variables: Vec::new(),
            live,
            is_live: true,
            planning,
            without_simulation: manner.without_simulation,
            output: Vec::new(),
            detailed_exitcode: false,
            signing: signing.clone(),
        }
    }
}
