//! `cutlist run` with a forge: a revision that is not used has a status that says why. Plans are posted as `NodePlan` objects, and on pull
//! requests as previews.

use std::cell::RefCell;
use std::sync::Arc;

use crate::adapters::forge::{HostedRepository, State, Status};
use crate::cli::arguments::RunArguments;
use crate::cli::exit::Failure;
use crate::cli::output;
use crate::cli::post::resolve;
use crate::core::plan::{Plan, Revision};
use crate::ports::{Forge, PortError, chain};
use crate::render::posting::fitted_line;

/// How the context of the status ends.
const REVISION: &str = "revision";

/// Sets statuses of commits of the branch that is followed; nothing where no forge is named.
#[derive(Default)]
pub struct Refusals {
    forge: Option<(Arc<HostedRepository>, String)>,
    /// The commit that was said not to be used: it may be used later, when more people may sign.
    refused: RefCell<Option<String>>,
}

impl Refusals {
    pub fn of(arguments: &RunArguments) -> Result<Self, Failure> {
        if arguments.forge.forge.is_none() {
            return Ok(Self::default());
        }
        let forge = resolve(&arguments.forge, None)?.connect()?;
        let context = format!("{}/{REVISION}", arguments.forge.forge_name);
        Ok(Self { forge: Some((Arc::new(forge), context)), refused: RefCell::default() })
    }

    /// Beside the controller, which waits for no forge. One that is away is asked again for as long as its client does that.
    fn tell(&self, commit: &str, state: State, description: &str) {
        let Some((forge, context)) = &self.forge else { return };
        let description = output::shown(&fitted_line(description, forge.table().status_characters));
        let status = Status { context: context.clone(), state, description, link: None };
        let (forge, commit) = (forge.clone(), commit.to_owned());
        let _detached = tokio::spawn(async move {
            if let Err(error) = forge.set_status(&commit, &status).await {
                output::say(&format!("{} of {commit} can not be set: {}", status.context, chain(&error)));
            }
        });
    }
}

impl Forge for Refusals {
    async fn post_plan(&self, plan: &Plan, _markdown: impl Fn() -> String) -> Result<(), PortError> {
        let was_refused = self.refused.borrow().as_ref() == Some(&plan.revision.id);
        if was_refused && let Some(commit) = self.refused.take() {
            self.tell(&commit, State::Success, "used");
        }
        Ok(())
    }

    async fn post_failure(&self, revision: &Revision, headline: &str, _markdown: &str) -> Result<(), PortError> {
        self.refused.replace(Some(revision.id.clone()));
        self.tell(&revision.id, State::Failure, headline);
        Ok(())
    }
}
