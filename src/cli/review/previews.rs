//! Previews of pull requests for the clusters that the command line names, and plans in the living one. No adapter can hold this: it is
//! the commands `preview` and `why` themselves, and so it reads settings, files and clusters as they do.

use std::path::{Path, PathBuf};

use anyhow::anyhow;

use crate::adapters::kubernetes::{Approval, approve, user_name};
use crate::api::node_plan::NodePlan;
use crate::api::preview::Preview;
use crate::cli::arguments::PreviewArguments;
use crate::cli::cluster::{connected, unreadable};
use crate::cli::exit::Failure;
use crate::cli::{output, preview};
use crate::ports::pull_requests::{Previews, Question};
use crate::ports::{PortError, PortErrorKind};

/// Reads and plans on other threads: a snapshot may be large.
pub struct ClusterPreviews {
    arguments: PreviewArguments,
    /// The clone.
    clone: PathBuf,
}

impl ClusterPreviews {
    /// `arguments`: with the folder of the definitions in the clone; base and head are those of each question.
    pub fn new(arguments: PreviewArguments, clone: &Path) -> Self {
        Self { arguments, clone: clone.to_owned() }
    }

    fn between(&self, base: &str, head: &str) -> PreviewArguments {
        PreviewArguments { base: base.to_owned(), head: head.to_owned(), ..self.arguments.clone() }
    }
}

impl Previews for ClusterPreviews {
    fn environment(&self) -> &str {
        &self.arguments.environment
    }

    async fn preview(
        &self,
        base: &str,
        head: &str,
        begins: impl Fn(&str, &str) + Send + 'static,
    ) -> Result<Preview, PortError> {
        let arguments = self.between(base, head);
        let made = move || preview::made(&arguments, &begins).map(|(preview, _)| preview);
        beside(made).await.map_err(|failure| failed(&failure))
    }

    async fn answer(&self, base: &str, head: &str, question: Question) -> Result<Vec<(String, String)>, PortError> {
        let arguments = self.between(base, head);
        beside(move || preview::answered(&arguments, &question)).await.map_err(|failure| {
            let hint = failure.hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}"));
            // It goes to where others read it, not through the door of this program's own errors.
            let said = preview::without_folders(&format!("{:#}{hint}", failure.error), &self.arguments);
            PortError { operation: output::shown(&said), ..failed(&failure) }
        })
    }

    async fn node_plans(&self) -> Result<Vec<(String, Vec<NodePlan>)>, PortError> {
        let arguments = PreviewArguments { path: self.clone.clone(), ..self.arguments.clone() };
        beside(move || preview::node_plans(&arguments)).await.map_err(|failure| failed(&failure))
    }

    async fn approve(&self, plan: &str, name: &str, on: &str) -> Result<(), PortError> {
        self.approve_in_cluster(plan, name, on).await.map_err(|failure| failed(&failure))
    }
}

impl ClusterPreviews {
    async fn approve_in_cluster(&self, plan: &str, name: &str, on: &str) -> Result<(), Failure> {
        let connection = connected(&self.arguments.live).await?;
        let refused = |error| unreadable(error, &connection.address);
        let user = user_name(&connection.client).await.map_err(refused)?;
        let by = user.unwrap_or_else(|| name.to_owned());
        match approve(&connection.client, plan, &by, Some(on)).await.map_err(refused)? {
            // One that does not wait any more was approved by somebody else, or another took its place.
            Approval::Given { .. } | Approval::NotWaiting { .. } | Approval::NoSuchPlan => Ok(()),
            Approval::Ambiguous { names } => Err(Failure::failed(anyhow!("{plan} may be any of {}", names.join(", ")))),
        }
    }
}

/// On a thread of its own.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(Failure::failed)?
}

fn failed(failure: &Failure) -> PortError {
    PortError { operation: format!("{:#}", failure.error), kind: PortErrorKind::Temporary, source: None }
}
