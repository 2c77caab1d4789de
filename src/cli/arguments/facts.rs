//! What is typed for `cutlist facts`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::DefinitionArguments;

#[derive(Debug, Args)]
pub struct FactsArguments {
    #[command(subcommand)]
    pub action: FactsAction,
}

#[derive(Debug, Subcommand)]
pub enum FactsAction {
    /// Ask EC2 what each EC2NodeClass selects, and write it with its date to a file for `plan --facts`, `preview --facts` and `ami lock`
    ///
    /// It only looks: credentials are those of the AWS SDK, and the permissions are those of `observe`.
    Pull(FactsPullArguments),
}

#[derive(Debug, Args)]
pub struct FactsPullArguments {
    /// Folder or Git clone with definitions
    pub path: PathBuf,
    /// The EKS cluster that nodes join
    #[arg(long, value_name = "NAME", env = "CLUSTER_NAME")]
    pub cluster_name: String,
    /// The file to write
    #[arg(long, value_name = "FILE", default_value = "facts.json")]
    pub write: PathBuf,
    #[command(flatten)]
    pub definitions: DefinitionArguments,
}
