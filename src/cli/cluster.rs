//! A live cluster, read once: for `plan`, `why` and `snapshot`.

use std::path::PathBuf;

use clap::Args;

use crate::adapters::kubernetes::{ConnectError, Connection, connect, node_plans as posted_plans, read_once};
use crate::api::node_plan::NodePlan;
use crate::core::snapshot::Snapshot;
use crate::ports::{PortError, PortErrorKind};

use super::exit::Failure;
use super::patience::awaited;

#[derive(Clone, Debug, Default, Args)]
pub struct ClusterArguments {
    /// Read the cluster that this kubeconfig names; default with --context: KUBECONFIG, then ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; default: its current one
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

impl ClusterArguments {
    /// Whether a live cluster was asked for.
    pub fn are_given(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }
}

/// Everything in the cluster as a snapshot, with what the reader should know.
pub fn read(arguments: &ClusterArguments) -> Result<(Snapshot, Vec<String>), Failure> {
    asked(arguments, async |connection| read_once(&connection.client).await)
}

/// The plans that were posted in it.
pub fn node_plans(arguments: &ClusterArguments) -> Result<Vec<NodePlan>, Failure> {
    asked(arguments, async |connection| posted_plans(&connection.client).await)
}

/// What the cluster answers to one question.
fn asked<T>(
    arguments: &ClusterArguments,
    question: impl AsyncFnOnce(&Connection) -> Result<T, PortError>,
) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::failed)?;
    runtime.block_on(async {
        let connection = connected(arguments).await?;
        let answer = awaited(&format!("the API server at {}", connection.address), question(&connection)).await;
        answer.map_err(|error| unreadable(error, &connection.address))
    })
}

pub async fn connected(arguments: &ClusterArguments) -> Result<Connection, Failure> {
    connect(arguments.kubeconfig.as_deref(), arguments.context.as_deref()).await.map_err(|error| {
        let hint = match &error {
            ConnectError::Kubeconfig { path: None, .. } => {
                "check KUBECONFIG, else ~/.kube/config; or name a file with --kubeconfig"
            }
            ConnectError::Kubeconfig { path: Some(_), .. } => {
                "check --kubeconfig: it must be a file that `kubectl --kubeconfig` can read"
            }
            ConnectError::NoCluster { .. } => "name a kubeconfig with --kubeconfig, or set KUBECONFIG",
            ConnectError::Context { .. } => "`kubectl config get-contexts` lists the contexts there are",
            ConnectError::Token => "write the token in one line, as `kubectl create token` prints it",
            ConnectError::Client { .. } => "check certificates and credentials in the kubeconfig",
        };
        Failure::failed(error).with_hint(hint)
    })
}

/// What the user can do about a cluster that does not answer, or not everything.
pub fn unreadable(error: PortError, address: &str) -> Failure {
    let hint = match error.kind {
        PortErrorKind::Temporary => format!("is the API server at {address} running, and reachable from here?"),
        PortErrorKind::Denied => format!(
            "`kubectl auth can-i {}` should say yes; is the token expired? deploy/ has a ClusterRole with what is needed",
            error.operation
        ),
        PortErrorKind::NotFound => {
            "install the definitions: `cutlist crds | kubectl apply --server-side -f -`".to_owned()
        }
        _ => format!("the API server at {address} said so"),
    };
    Failure::failed(error).with_hint(hint)
}
