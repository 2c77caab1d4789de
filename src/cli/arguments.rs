//! Exactly what was typed. What it means together with `cutlist.yaml` is resolved in `settings.rs`.

mod ami;
mod completion;
mod examples;
mod facts;
mod forms;
mod lint;
mod lsp;
mod migrate;
mod named;
mod notifications;
mod post;
mod preview;
mod review;
mod signing;
mod typed;

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::adapters::flux::SourceName;
use crate::api::approval_rules::ApprovalRules;
use crate::api::duration::NillableDuration;
use crate::api::settings::ApprovalMode;
use crate::definitions::rules::files::is_variable_name;

pub use super::cluster::ClusterArguments;
pub use ami::{AmiAction, AmiArguments, AmiLockArguments};
pub use completion::CompletionArguments;
pub use facts::{FactsAction, FactsArguments, FactsPullArguments};
pub use forms::FormOutput;
pub use named::{ClusterVariable, NamedPath};
pub use preview::PreviewArguments;

pub use lint::{
    ExplainArguments, ExportArguments, FailOnArgument, LintArguments, LintForm, SchemaAction, SchemaArguments,
};
pub use lsp::LspArguments;
pub use migrate::MigrateArguments;
pub use notifications::NotificationArguments;
pub use post::{CommentArgument, ForgeArgument, ForgeArguments, PostArguments};
pub use review::{ReviewArguments, ReviewManner};
pub use signing::SigningArguments;
pub use typed::{Typed, parse};

/// `terraform plan` for Kubernetes nodes.
///
/// Reads Karpenter NodePools, EC2NodeClasses and disruption budgets from Git, and says which EC2 nodes will be created,
/// replaced and removed, and why, before it happens.
#[derive(Debug, Parser)]
#[command(name = "cutlist", version, max_term_width = 100, propagate_version = true, after_long_help = examples::BEGIN)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what would be created, replaced and removed; touch nothing
    #[command(after_long_help = examples::PLAN)]
    Plan(PlanArguments),
    /// Show what a change in Git would do to the nodes of one or many clusters, before it is merged; touch nothing
    #[command(after_long_help = examples::PREVIEW)]
    Preview(PreviewArguments),
    /// Say why a pod waits, or goes where the plan puts it, and what would help
    #[command(after_long_help = examples::WHY)]
    Why(WhyArguments),
    /// Go on, on a copy of the cluster in memory, until no plan changes it: what nodes, pods and the price come to
    #[command(after_long_help = examples::SIMULATE)]
    Simulate(SimulateArguments),
    /// Check definitions; needs no network and no credentials
    #[command(after_long_help = examples::LINT)]
    Lint(LintArguments),
    /// Say what a rule of lint is about, with examples
    Explain(ExplainArguments),
    /// Serve an editor while definitions are written: findings, fixes, completion, documentation
    ///
    /// A server of the Language Server Protocol on standard input and output: an editor starts it. `examples/editors` says how, for
    /// VS Code, Neovim, Helix and Emacs.
    Lsp(LspArguments),
    /// Rewrite definitions of Karpenter before version 1 as those of version 1; touch nothing without --write
    ///
    /// Prints the change as a patch, and says on standard error what was decided and what is left to do by hand. Comments, order and
    /// quotes stay. What comes from standard input goes to standard output.
    Migrate(MigrateArguments),
    /// Watch a repository, post each plan, then apply it
    #[command(after_long_help = examples::RUN)]
    Run(Box<RunArguments>),
    /// Post a preview to the pull request that it is about: a status, a comment, and lines of the files
    #[command(after_long_help = examples::POST)]
    Post(PostArguments),
    /// Look at open pull requests, and post what each would do, until stopped; outbound connections only
    #[command(after_long_help = examples::REVIEW)]
    Review(Box<ReviewArguments>),
    /// Keep the images of EC2NodeClasses in Git: a newer one replaces nodes when somebody commits it
    #[command(after_long_help = examples::AMI)]
    Ami(AmiArguments),
    /// Write what EC2 says of EC2NodeClasses to a file, for plans without EC2
    Facts(FactsArguments),
    /// Show what EC2 sells: instance types, what is in them, and their prices
    #[command(after_long_help = examples::CATALOG)]
    Catalog(CatalogArguments),
    /// Let a plan go ahead that waits for approval
    #[command(after_long_help = examples::APPROVE)]
    Approve(ApproveArguments),
    /// Write the cluster to a file that `plan --snapshot` reads
    #[command(after_long_help = examples::SNAPSHOT)]
    Snapshot(SnapshotArguments),
    /// Print the custom resource definitions, for `kubectl apply --server-side -f -`
    Crds,
    /// Write JSON schemas of the kinds, for editors and other validators
    Schema(SchemaArguments),
    /// Print what a shell completes commands, options and their values with
    #[command(after_long_help = examples::COMPLETION)]
    Completion(CompletionArguments),
    /// Print the version, as `--version` does
    Version,
    /// Fetch for `cutlist run`, which ends this process when it takes too long
    #[command(hide = true, name = crate::adapters::git::FETCH_COMMAND)]
    FetchForController,
}

impl Command {
    /// How the command reads definitions, if it does.
    pub fn definitions(&self) -> Option<&DefinitionArguments> {
        match self {
            Self::Plan(arguments) => Some(&arguments.inputs.planning.definitions),
            Self::Preview(arguments) => Some(&arguments.planning.definitions),
            Self::Why(arguments) => Some(match &arguments.subject {
                WhySubject::Pod(arguments) => &arguments.inputs.planning.definitions,
                WhySubject::Node(arguments) => &arguments.inputs.planning.definitions,
            }),
            Self::Simulate(arguments) => Some(&arguments.inputs.planning.definitions),
            Self::Lint(arguments) => Some(&arguments.definitions),
            Self::Lsp(arguments) => Some(&arguments.definitions),
            Self::Review(arguments) => Some(&arguments.definitions),
            Self::Facts(FactsArguments { action: FactsAction::Pull(arguments) }) => Some(&arguments.definitions),
            Self::Ami(arguments) => Some(&arguments.action.arguments().definitions),
            Self::Run(arguments) => Some(&arguments.definitions),
            Self::Approve(_)
            | Self::Catalog(_)
            | Self::Snapshot(_)
            | Self::Completion(_)
            | Self::Crds
            | Self::Explain(_)
            | Self::Migrate(_)
            | Self::Post(_)
            | Self::Schema(_)
            | Self::Version
            | Self::FetchForController => None,
        }
    }
}

fn moment(text: &str) -> Result<jiff::Timestamp, String> {
    text.parse().map_err(|_| "write a time as RFC 3339 has it, such as 2026-11-20T09:00:00Z".to_owned())
}

/// What is asked again and again can not be asked never.
fn interval(text: &str) -> Result<NillableDuration, String> {
    let interval = text.parse::<NillableDuration>().ok().filter(|interval| interval.seconds().is_some());
    interval.ok_or_else(|| "write a duration, such as 30s or 5m".to_owned())
}

/// What a plan is made from.
#[derive(Debug, Args)]
pub struct InputArguments {
    /// Folder or Git clone with definitions; a bare folder of manifests works too, and `-` for standard input
    pub path: PathBuf,
    /// Read the definitions of this commit, branch or tag instead of the files on disk
    #[arg(long, value_name = "REF")]
    pub revision: Option<String>,
    /// The cluster: Kubernetes objects as `kubectl get -o json` (or yaml) prints them; may be gzipped; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    pub snapshot: Vec<PathBuf>,
    #[command(flatten)]
    pub cluster: ClusterArguments,
    #[command(flatten)]
    pub planning: PlanningArguments,
}

/// How to plan, whatever the cluster.
#[derive(Clone, Debug, Default, Args)]
pub struct PlanningArguments {
    /// What EC2 sells, instead of the built-in catalog
    #[arg(long, value_name = "FILE")]
    pub catalog: Option<PathBuf>,
    /// What EC2 says of the EC2NodeClasses, as `cutlist facts pull` wrote it, instead of what their status says
    #[arg(long, value_name = "FILE")]
    pub facts: Option<PathBuf>,
    /// How nodes are chosen, instead of what cutlist.yaml says
    #[arg(long, value_enum)]
    pub packing: Option<PackingArgument>,
    /// The moment to plan for, RFC 3339
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub now: Option<jiff::Timestamp>,
    /// The same inputs and the same number give the same bytes
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    #[command(flatten)]
    pub definitions: DefinitionArguments,
}

#[derive(Debug, Args)]
pub struct PlanArguments {
    #[command(flatten)]
    pub inputs: InputArguments,
    /// Show what the change of definitions since this commit, branch or tag does to the nodes
    #[arg(long, value_name = "REF")]
    pub against: Option<String>,
    /// Form of what is printed
    #[arg(short, long, value_enum, default_value_t = PlanOutput::Text)]
    pub output: PlanOutput,
    /// Show what the disruption budgets allow over the days to come, instead of a plan
    #[arg(long, conflicts_with_all = ["against", "detailed_exitcode", "timings"])]
    pub calendar: bool,
    /// Days of the calendar
    #[arg(long, default_value_t = 14, requires = "calendar", value_parser = clap::value_parser!(u16).range(1..=366))]
    pub days: u16,
    /// Whose days and hours the calendar shows: an IANA name such as `Asia/Seoul`
    #[arg(long, value_name = "ZONE", default_value = "UTC", requires = "calendar")]
    pub timezone: String,
    /// Exit with 2 when there are changes (0: nothing to do, 1: error)
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// Print seconds of each phase and peak memory as one line of JSON on stderr
    #[arg(long)]
    pub timings: bool,
}

#[derive(Debug, Args)]
pub struct SimulateArguments {
    #[command(flatten)]
    pub inputs: InputArguments,
    /// When to stop: when nothing moves any more, or after this much virtual time, such as `2h`
    #[arg(long, value_name = "settled|DURATION", default_value = "settled")]
    pub until: Until,
    /// Give a workload another size first, whatever a ResourceQuota allows; repeatable
    #[arg(long, value_name = "NAMESPACE/NAME=REPLICAS")]
    pub scale: Vec<Resize>,
    /// Form of what is printed
    #[arg(short, long, value_enum, default_value_t = SimulateOutput::Text)]
    pub output: SimulateOutput,
    /// Show every plan, and what is done for it
    #[arg(short, long)]
    pub verbose: bool,
}

/// When a simulation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    Settled,
    Seconds(u64),
}

/// Another size of a workload, which is `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resize {
    pub workload: String,
    pub replicas: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SimulateOutput {
    Text,
    Json,
}

#[derive(Debug, Args)]
pub struct WhyArguments {
    #[command(subcommand)]
    pub subject: WhySubject,
}

#[derive(Debug, Subcommand)]
pub enum WhySubject {
    /// Why a pod waits, or why it goes where the plan puts it, or why its node stays
    Pod(WhyPodArguments),
    /// Why a node is there, stays or went, by the plan for now and the plans that were posted
    Node(WhyNodeArguments),
}

#[derive(Debug, Args)]
pub struct WhyPodArguments {
    /// The pod: NAMESPACE/NAME, or NAME; the name of its Deployment, StatefulSet or Job will do
    #[arg(value_name = "POD")]
    pub pod: String,
    /// Namespace of the pod
    #[arg(short, long)]
    pub namespace: Option<String>,
    #[command(flatten)]
    pub inputs: InputArguments,
    /// Form of what is printed
    #[arg(short, long, value_enum, default_value_t = WhyOutput::Text)]
    pub output: WhyOutput,
}

#[derive(Debug, Args)]
pub struct WhyNodeArguments {
    /// The node, or its NodeClaim; it may be gone
    #[arg(value_name = "NODE")]
    pub node: String,
    #[command(flatten)]
    pub inputs: InputArguments,
    /// Form of what is printed
    #[arg(short, long, value_enum, default_value_t = WhyOutput::Text)]
    pub output: WhyOutput,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WhyOutput {
    Text,
    Json,
}

#[derive(Clone, Debug, Default, Args)]
pub struct DefinitionArguments {
    /// Value for `${NAME}` in definitions; beats the environment, which beats cutlist.yaml
    #[arg(long = "variable", value_name = "NAME=VALUE", value_parser = parse_variable)]
    pub variables: Vec<(String, String)>,
    /// Take the value for `${NAME}` from the environment, which is not read otherwise; repeatable
    ///
    /// `CUTLIST_VAR_NAME` in the environment gives a value for `${NAME}` without this. What comes from the environment is
    /// not shown: its name stands in its place.
    #[arg(long = "variable-from-environment", value_name = "NAME", value_parser = parse_environment)]
    pub from_environment: Vec<FromEnvironment>,
    /// Which of several clusters the definitions are read for, as `--cluster` names it.
    #[arg(skip)]
    pub cluster: Option<String>,
}

/// A variable of the environment that the operator named.
#[derive(Clone)]
pub struct FromEnvironment {
    pub name: String,
    pub value: String,
}

/// Without the value, which may be a secret.
impl std::fmt::Debug for FromEnvironment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("FromEnvironment").field(&self.name).finish()
    }
}

fn parse_environment(name: &str) -> Result<FromEnvironment, String> {
    match std::env::var(name) {
        Ok(value) => Ok(FromEnvironment { name: name.to_owned(), value }),
        Err(std::env::VarError::NotPresent) => Err("the environment has no variable of this name".to_owned()),
        Err(std::env::VarError::NotUnicode(_)) => Err("its value is not UTF-8 text".to_owned()),
    }
}

fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, _)) if !is_variable_name(name) => {
            Err("a name has letters, digits and `_`, and does not begin with a digit".to_owned())
        }
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PackingArgument {
    /// The cheapest fleet
    Cheapest,
    /// As Karpenter chooses
    Karpenter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlanOutput {
    Text,
    Json,
    Markdown,
}

#[derive(Debug, Args)]
pub struct RunArguments {
    /// Repository of definitions: URL, bare repository, clone or folder
    pub repository: Option<String>,
    /// Use the in-memory cluster and cloud
    #[arg(long)]
    pub embedded: bool,
    #[command(flatten)]
    pub controller: ControllerArguments,
    /// Watch this folder or clone instead of polling a repository
    #[arg(long, value_name = "DIR", conflicts_with = "repository", help_heading = "Definitions")]
    pub watch: Option<PathBuf>,
    /// Branch or tag to follow; default: the remote's HEAD
    #[arg(long, value_name = "REF", help_heading = "Definitions")]
    pub branch: Option<String>,
    /// Folder of the repository that holds the definitions
    #[arg(long, value_name = "PATH", help_heading = "Definitions")]
    pub sub_path: Option<String>,
    /// How often a remote repository is asked
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = interval, help_heading = "Definitions")]
    pub interval: NillableDuration,
    /// File that holds the token (or `user:password`) for the repository
    #[arg(long, value_name = "FILE", help_heading = "Definitions")]
    pub credentials_file: Option<PathBuf>,
    /// What the cloud sells, instead of the built-in catalog; EC2 itself says what it sells
    #[arg(long, value_name = "FILE", help_heading = "Nodes")]
    pub catalog: Option<PathBuf>,
    /// Wait as the world would; without it the embedded world's time is virtual
    #[arg(long)]
    pub real_time: bool,
    /// The same inputs and the same number give the same bytes
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Also write logs as JSON to stderr
    #[arg(short, long)]
    pub verbose: bool,
    #[command(flatten, next_help_heading = "Definitions")]
    pub definitions: DefinitionArguments,
    #[command(flatten, next_help_heading = "Signed commits")]
    pub signing: SigningArguments,
    #[command(flatten, next_help_heading = "Reviews of pull requests")]
    pub forge: ForgeArguments,
    #[command(flatten, next_help_heading = "Reviews of pull requests")]
    pub reviews: ReviewManner,
    #[command(flatten, next_help_heading = "Notifications")]
    pub notifications: NotificationArguments,
    #[arg(skip)]
    pub typed: Vec<Typed>,
}

/// On a real cluster.
#[derive(Clone, Debug, Args)]
pub struct ControllerArguments {
    #[command(flatten, next_help_heading = "Cluster")]
    pub cluster: ClusterArguments,
    /// Where nodes come from
    #[arg(long, value_enum, value_name = "CLOUD", help_heading = "Nodes")]
    pub cloud: Option<CloudArgument>,
    /// Only plan and post, or also carry out
    #[arg(long, value_enum, default_value_t = ModeArgument::Enforce, value_name = "MODE", help_heading = "What it may do")]
    pub mode: ModeArgument,
    /// Where definitions come from
    #[arg(long, value_enum, default_value_t = SourceArgument::Repository, value_name = "SOURCE", help_heading = "Definitions")]
    pub source: SourceArgument,
    /// With --source flux: whose artifact is the revision, such as GitRepository/nodes.flux-system; OCIRepository and Bucket as well
    #[arg(long, value_name = "KIND/NAME.NAMESPACE", help_heading = "Definitions")]
    pub source_ref: Option<SourceName>,
    /// Ask at least for this approval, whatever cutlist.yaml says: `provision=manual`, `disrupt=manual`, `twoPeople=true`,
    /// `confirmPoolRemovalAbove=10%`; several with commas. `manual`: for everything
    #[arg(long, value_name = "RULE", value_delimiter = ',', help_heading = "What it may do")]
    pub approval: Vec<ApprovalRule>,
    /// Use a revision of a remote repository that is older than the one in force, as after a branch was set back
    #[arg(long, help_heading = "Definitions")]
    pub allow_older_revision: bool,
    /// Apply the custom resource definitions first
    #[arg(long, help_heading = "What it may do")]
    pub install_crds: bool,
    /// Stand for election, so that one of several replicas acts; `--mode enforce` does so in any case
    #[arg(long, help_heading = "Election")]
    pub leader_elect: bool,
    /// With --mode enforce: act without waiting to lead, and end where another one acts
    #[arg(long, conflicts_with = "leader_elect", help_heading = "Election")]
    pub no_leader_elect: bool,
    /// Which installation of Cutlist this is: what others made is not touched; default: the UID of namespace kube-system
    #[arg(long, value_name = "NAME", value_parser = installation, help_heading = "What it may do")]
    pub installation: Option<String>,
    /// Namespace of the lease; default: that of the pod or of the context
    #[arg(long, value_name = "NAMESPACE", help_heading = "Election")]
    pub lease_namespace: Option<String>,
    /// Serve /metrics, /healthz and /readyz here
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Metrics and health")]
    pub listen: Option<std::net::SocketAddr>,
    /// With --cloud aws: the EKS cluster that nodes join
    #[arg(long, value_name = "NAME", env = "CLUSTER_NAME", help_heading = "Nodes")]
    pub cluster_name: Option<String>,
    /// With --cloud aws: the SQS queue to which EventBridge sends what EC2 announces
    #[arg(long, value_name = "NAME", env = "INTERRUPTION_QUEUE", help_heading = "Nodes")]
    pub interruption_queue: Option<String>,
    /// With --cloud embedded: keep its instances in this file, so that they outlive this process
    #[arg(long, value_name = "FILE", help_heading = "Nodes")]
    pub cloud_state: Option<PathBuf>,
    /// With --cloud embedded: seconds from a launch until the node joins
    #[arg(long, value_name = "SECONDS", default_value_t = 2, help_heading = "Nodes")]
    pub boot_seconds: u64,
}

impl ControllerArguments {
    /// Whether this process acts only while it leads.
    pub fn elects(&self) -> bool {
        self.leader_elect || (self.mode == ModeArgument::Enforce && !self.no_leader_elect)
    }

    /// Whether it has a lease that says that it acts.
    pub fn holds_lease(&self) -> bool {
        self.elects() || self.mode == ModeArgument::Enforce
    }
}

/// It is the value of a label.
fn installation(text: &str) -> Result<String, String> {
    const CHARACTERS_MAX: usize = 63;
    let is_inside = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    let has_ends = text.starts_with(|it: char| it.is_ascii_alphanumeric())
        && text.ends_with(|it: char| it.is_ascii_alphanumeric());
    if text.len() <= CHARACTERS_MAX && has_ends && text.chars().all(is_inside) {
        return Ok(text.to_owned());
    }
    Err("write up to 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends".to_owned())
}

/// A rule for approvals that the operator gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRule(pub ApprovalRules);

impl FromStr for ApprovalRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const MANUAL: ApprovalMode = ApprovalMode::Manual;
        let none = ApprovalRules::default();
        let rules = match text.split_once('=').unwrap_or((text, "")) {
            ("manual", "") => ApprovalRules { provision: MANUAL, disrupt: MANUAL, ..none },
            ("automatic", "") | ("provision" | "disrupt", "automatic") | ("twoPeople", "false") => none,
            ("provision", "manual") => ApprovalRules { provision: MANUAL, ..none },
            ("disrupt", "manual") => ApprovalRules { disrupt: MANUAL, ..none },
            ("twoPeople", "true") => ApprovalRules { two_people: true, ..none },
            ("confirmPoolRemovalAbove", limit) if is_limit(limit) => {
                ApprovalRules { confirm_pool_removal_above: vec![limit.to_owned()], ..none }
            }
            _ => {
                return Err(
                    "give manual, provision=manual, disrupt=manual, twoPeople=true, or confirmPoolRemovalAbove= \
                            with a count or a percentage"
                        .to_owned(),
                );
            }
        };
        Ok(Self(rules))
    }
}

/// A count, or a percentage up to 100.
fn is_limit(text: &str) -> bool {
    let digits = text.strip_suffix('%').unwrap_or(text);
    let number = digits.parse::<u32>().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
    number.is_some_and(|number| !text.ends_with('%') || number <= 100)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CloudArgument {
    /// Instances in memory, nodes in the cluster: to try Cutlist without an AWS account
    Embedded,
    /// EC2
    Aws,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeArgument {
    Observe,
    Enforce,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SourceArgument {
    /// A Git repository, or a folder
    Repository,
    /// The cluster, where Argo CD or Flux applies them
    Cluster,
    /// What Flux fetched: the artifact of the source that --source-ref names
    Flux,
}

#[derive(Debug, Args)]
pub struct ApproveArguments {
    /// The plan: its name as `kubectl get nodeplans` shows it, or the beginning of it
    pub plan: String,
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Who approves, where the API server does not say who you are; default: the user of this machine
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CatalogArguments {
    #[command(subcommand)]
    pub action: Option<CatalogAction>,
    /// The region that sells it
    #[arg(long, default_value = "us-east-1")]
    pub region: String,
    /// What a type must be: `instance-category=c,m,r`, `instance-cpu>=8`, `arch!=arm64`, `memory>=16Gi`; repeatable, all must hold
    ///
    /// The left side is a label, with or without its prefix (`karpenter.k8s.aws/instance-family`, `instance-family`,
    /// `family`), or a resource of the node's capacity (`cpu`, `pods`, `nvidia.com/gpu`); `memory` is the memory as
    /// sold. Operators: `=`, `!=`, `>=`, `<=`, `>`, `<`; only a name asks that it exists, `!name` that it does not. Zone
    /// and capacity type also choose among the offerings.
    #[arg(long, value_name = "REQUIREMENT")]
    pub filter: Vec<String>,
    /// Order of the rows
    #[arg(long, value_enum, default_value_t = CatalogOrder::Name)]
    pub sort: CatalogOrder,
    /// A catalog file instead of the built-in one
    #[arg(long, value_name = "FILE", conflicts_with = "region")]
    pub catalog: Option<PathBuf>,
    /// Form of what is printed
    #[arg(short, long, value_enum, default_value_t = CatalogOutput::Text)]
    pub output: CatalogOutput,
}

#[derive(Debug, Subcommand)]
pub enum CatalogAction {
    /// Ask EC2 what it sells in a region now, at which prices, and write it to a file for `plan --catalog`
    ///
    /// It only looks: credentials are those of the AWS SDK, and the permissions are those of `observe`. What may not be asked for, such as
    /// prices on demand, is taken from this program, and said.
    Pull(CatalogPullArguments),
    /// Write the file of the built-in catalog anew from an EC2 endpoint (for those who build Cutlist)
    #[cfg(feature = "aws")]
    Refresh(CatalogRefreshArguments),
}

#[derive(Debug, Args)]
pub struct CatalogPullArguments {
    /// The region that sells it; unset: that of the AWS SDK, such as AWS_REGION
    #[arg(long)]
    pub region: Option<String>,
    /// The file to write
    #[arg(long, value_name = "FILE", default_value = "catalog.json")]
    pub write: PathBuf,
}

#[cfg(feature = "aws")]
#[derive(Debug, Args)]
pub struct CatalogRefreshArguments {
    /// EC2 at this address, such as moto's server, instead of AWS
    #[arg(long, value_name = "URL")]
    pub endpoint_url: Option<String>,
    /// The file to write
    #[arg(long, value_name = "FILE", default_value = "src/core/catalog/data/instance-types.jsonl.gz")]
    pub write: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CatalogOrder {
    /// Family, then size
    Name,
    /// Cheapest on demand first
    Price,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CatalogOutput {
    Text,
    Json,
}

#[derive(Debug, Args)]
pub struct SnapshotArguments {
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Take the snapshot of the embedded world after the scenario of this repository of definitions was played
    #[arg(long, value_name = "PATH")]
    pub embedded: Option<PathBuf>,
    /// Trim and redact objects that were written before, as `kubectl get -o json` prints them
    #[arg(long, value_name = "FILE")]
    pub from: Vec<PathBuf>,
    /// Stop the scenario after this step (from 1)
    #[arg(long, value_name = "STEP", requires = "embedded")]
    pub after_step: Option<usize>,
    /// The same inputs and the same number give the same bytes
    #[arg(long, default_value_t = 0, requires = "embedded")]
    pub seed: u64,
    /// Keep it, compressed, as `NAME/TIME.json.gz` in this folder, with `git:BRANCH` on a branch of --repository, or with
    /// `oci://HOST/REPOSITORY:TAG` as an artifact of a registry, where the newest has the tag
    #[arg(long, value_name = "FOLDER|git:BRANCH|oci://...")]
    pub to: Option<String>,
    /// What the cluster is called there
    #[arg(long, value_name = "NAME", default_value = "cluster", requires = "to")]
    pub name: String,
    /// How many of the cluster stay in the folder or on the branch; older ones are removed
    #[arg(long, value_name = "COUNT", default_value_t = 96, requires = "to", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: u32,
    /// The repository that the branch is pushed to: URL, or path of a bare repository
    #[arg(long, value_name = "URL", requires = "to")]
    pub repository: Option<String>,
    /// File that holds the token (or `user:password`) for the repository or the registry
    #[arg(long, value_name = "FILE", requires = "to")]
    pub credentials_file: Option<PathBuf>,
}
