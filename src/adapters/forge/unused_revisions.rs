//! Statuses of revisions that are not used, which say why. Plans are posted as `NodePlan` objects, and on pull requests as previews.

use std::cell::RefCell;
use std::sync::Arc;

use crate::core::plan::{Plan, Revision};
use crate::ports::pull_requests::{State, Status};
use crate::ports::{Forge, PortError, chain};

use super::HostedRepository;

/// How the context of the status ends.
const REVISION: &str = "revision";

/// How texts come out of the program.
#[derive(Clone, Copy)]
pub struct Voice {
    /// A text as one line of at most so many characters, without what must not be shown.
    pub line: fn(&str, usize) -> String,
    /// Tells the operator.
    pub say: fn(&str),
}

/// Sets statuses of commits of the branch that is followed; nothing where no forge is named.
#[derive(Default)]
pub struct UnusedRevisions {
    forge: Option<(Arc<HostedRepository>, String, Voice)>,
    /// The commit that was said not to be used: it may be used later, when more people may sign.
    refused: RefCell<Option<String>>,
}

impl UnusedRevisions {
    /// `name`: how contexts of statuses begin.
    pub fn on(forge: HostedRepository, name: &str, voice: Voice) -> Self {
        let context = format!("{name}/{REVISION}");
        Self { forge: Some((Arc::new(forge), context, voice)), refused: RefCell::default() }
    }

    /// Beside the controller, which waits for no forge. One that is away is asked again for as long as its client does that.
    fn tell(&self, commit: &str, state: State, description: &str) {
        let Some((forge, context, voice)) = &self.forge else { return };
        let description = (voice.line)(description, forge.table().status_characters);
        let status = Status { context: context.clone(), state, description, link: None };
        let (forge, commit, say) = (forge.clone(), commit.to_owned(), voice.say);
        let _detached = tokio::spawn(async move {
            if let Err(error) = forge.set_status(&commit, &status).await {
                say(&format!("{} of {commit} can not be set: {}", status.context, chain(&error)));
            }
        });
    }
}

impl Forge for UnusedRevisions {
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
