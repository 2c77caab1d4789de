//! What was typed behind `cutlist lint`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{DefinitionArguments, FormOutput};
use crate::definitions::KarpenterVersion;

#[derive(Debug, Args)]
pub struct LintArguments {
    /// Folders or files with definitions, or patterns such as 'pools/*.yaml'; `-` is a stream of them on standard input
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// How findings are shown, and where: FORM or FORM=FILE; repeatable
    ///
    /// FORM is one of text, json, jsonl, sarif, junit, github, gitlab, azuredevops, tap, markdown, checkstyle.
    #[arg(short, long, value_name = "FORM[=FILE]", default_value = "text")]
    pub output: Vec<FormOutput<LintForm>>,
    /// From which severity on a finding makes this fail, with exit code 1; default: warning, or what cutlist.yaml says
    #[arg(long, value_enum, value_name = "SEVERITY")]
    pub fail_on: Option<FailOnArgument>,
    /// File of findings that are known, and do not count
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Write what is found now to the file of --baseline
    #[arg(long, requires = "baseline", conflicts_with_all = ["fix", "diff"])]
    pub write_baseline: bool,
    /// Write what is mechanical into the files: slips of words, old keys, quotes, units
    #[arg(long)]
    pub fix: bool,
    /// Show as a patch what --fix writes, and without --fix write nothing
    #[arg(long)]
    pub diff: bool,
    /// Only what the change since this commit, branch or tag is answerable for: in the files that it touches, and in what depends on them
    #[arg(long, value_name = "REF")]
    pub changed_since: Option<String>,
    /// Say as well what changed since this commit, branch or tag and may not, so that the API server refuses it, and which NodePools are gone; default: that of --changed-since
    #[arg(long, value_name = "REF")]
    pub against: Option<String>,
    /// The Karpenter that is installed: what is newer than it is an error; default: what cutlist.yaml says, or the newest that is known
    #[arg(long, value_name = "VERSION")]
    pub karpenter_version: Option<KarpenterVersion>,
    #[command(flatten)]
    pub definitions: DefinitionArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOnArgument {
    Error,
    Warning,
    Note,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LintForm {
    Text,
    Json,
    Jsonl,
    Sarif,
    Junit,
    Github,
    Gitlab,
    Azuredevops,
    Tap,
    Markdown,
    Checkstyle,
}

#[derive(Debug, Args)]
pub struct ExplainArguments {
    /// Code or name of a rule, such as CL0464 or unpinned-alias; without one, all are listed
    pub rule: Option<String>,
}

#[derive(Debug, Args)]
pub struct SchemaArguments {
    #[command(subcommand)]
    pub action: SchemaAction,
}

#[derive(Debug, clap::Subcommand)]
pub enum SchemaAction {
    /// Write the JSON schema of each kind into a folder, where kubeconform and editors find it
    ///
    /// The names are those of the CRDs catalog: GROUP/KIND_VERSION.json, for
    /// `kubeconform -schema-location 'FOLDER/{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json'`.
    Export(ExportArguments),
}

#[derive(Debug, Args)]
pub struct ExportArguments {
    /// The folder; made where it is missing
    pub folder: PathBuf,
}
