//! What is typed for `cutlist ami`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{ClusterArguments, DefinitionArguments, InputArguments, PlanningArguments};

#[derive(Debug, Args)]
pub struct AmiArguments {
    #[command(subcommand)]
    pub action: AmiAction,
}

#[derive(Debug, Subcommand)]
pub enum AmiAction {
    /// Write the images that EC2NodeClasses select now to `cutlist.lock`, and say which nodes that replaces
    ///
    /// Plans, and `cutlist run`, then go by the lock and not by what the terms of the classes find: a newer image replaces no node before
    /// the lock is renewed.
    Lock(AmiLockArguments),
    /// The same, and commit `cutlist.lock` to the branch that is checked out, with the number of nodes that it replaces in the message
    ///
    /// The author is the one of the repository's configuration. Nothing else is committed, no hook runs, and nothing is pushed.
    Bump(AmiLockArguments),
}

impl AmiAction {
    pub fn arguments(&self) -> &AmiLockArguments {
        match self {
            Self::Lock(arguments) | Self::Bump(arguments) => arguments,
        }
    }
}

#[derive(Debug, Args)]
pub struct AmiLockArguments {
    /// Folder or Git clone with definitions; `cutlist.lock` lies in it, beside `cutlist.yaml`
    pub path: PathBuf,
    /// The cluster whose EC2NodeClasses say in their status which images they select; as `plan --snapshot` takes it
    #[arg(long, value_name = "FILE")]
    pub snapshot: Vec<PathBuf>,
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// What EC2 says of the EC2NodeClasses, as `cutlist facts pull` wrote it
    #[arg(long, value_name = "FILE")]
    pub facts: Option<PathBuf>,
    /// Renew only this EC2NodeClass, and leave the others as they are locked; repeatable
    #[arg(long = "class", value_name = "NAME")]
    pub classes: Vec<String>,
    /// Say what would be written, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The moment to plan for, RFC 3339
    #[arg(long, value_name = "TIME", value_parser = super::moment)]
    pub now: Option<jiff::Timestamp>,
    #[command(flatten)]
    pub definitions: DefinitionArguments,
}

impl AmiLockArguments {
    /// What the nodes to be replaced are counted by.
    pub fn inputs(&self) -> InputArguments {
        let Self { path, snapshot, cluster, facts, now, definitions, .. } = self;
        InputArguments {
            path: path.clone(),
            revision: None,
            snapshot: snapshot.clone(),
            cluster: cluster.clone(),
            planning: PlanningArguments {
                facts: facts.clone(),
                now: *now,
                definitions: definitions.clone(),
                ..PlanningArguments::default()
            },
        }
    }
}
