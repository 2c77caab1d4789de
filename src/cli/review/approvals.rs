//! Who approved which plan of a pull request. The record is a status of its own on the commit, which only those can set who may write.

use std::collections::BTreeMap;

use crate::adapters::forge::{ForgeError, HostedRepository, Posting, State, Status, TargetPosting};
use crate::api::preview::{Preview, PreviewTarget, PreviewVerdict};
use crate::render::posting::fitted_line;

/// Digits of a digest that people write.
pub const DIGITS: usize = 7;
const APPROVED: &str = "approved by ";

/// Approvals that are known, by digest: who gave them.
#[derive(Clone, Debug, Default)]
pub struct Approvals(BTreeMap<String, String>);

/// What a reader sees of a digest.
pub fn short(digest: &str) -> String {
    digest.chars().take(DIGITS).collect()
}

fn digest_of(target: &PreviewTarget) -> Option<&str> {
    let digest = target.plan.as_ref().map(|plan| plan.digest.as_str());
    digest.filter(|_| target.verdict == PreviewVerdict::Changes)
}

impl Approvals {
    pub fn add(&mut self, digest: &str, by: &str) {
        self.0.insert(digest.to_owned(), by.to_owned());
    }

    /// The targets of a preview whose plan's digest begins so.
    pub fn meant<'p>(preview: &'p Preview, digits: &str) -> Vec<(&'p PreviewTarget, &'p str)> {
        let with_digest = |target: &'p PreviewTarget| Some((target, digest_of(target)?));
        preview.targets.iter().filter_map(with_digest).filter(|(_, digest)| digest.starts_with(digits)).collect()
    }

    /// A status for each target, beside those that are posted: one that an earlier process set is found on the commit.
    pub async fn statuses(
        &mut self,
        forge: &HostedRepository,
        preview: &Preview,
        posting: &Posting,
    ) -> Result<Vec<TargetPosting>, ForgeError> {
        let known = forge.statuses(&posting.head).await?;
        let mut statuses = Vec::new();
        for (target, posted) in preview.targets.iter().zip(&posting.targets) {
            let context = format!("{}/approval", posted.status.context);
            if let Some(digest) = digest_of(target) {
                let before = known.iter().find(|it| it.context == context && it.state == State::Success);
                let end = format!(": plan {}", short(digest));
                let by =
                    before.and_then(|it| it.description.strip_prefix(APPROVED)?.strip_suffix(&end).map(str::to_owned));
                if let Some(by) = by {
                    self.add(digest, &by);
                }
            }
            statuses.push(self.status(target, context, forge.table().status_characters));
        }
        Ok(statuses)
    }

    fn status(&self, target: &PreviewTarget, context: String, characters: usize) -> TargetPosting {
        let (state, description) = match (digest_of(target), target.verdict) {
            (Some(digest), _) => match self.0.get(digest) {
                Some(by) => (State::Success, format!("{APPROVED}{by}: plan {}", short(digest))),
                None => (State::Pending, format!("waits for: /cutlist approve {}", short(digest))),
            },
            (None, PreviewVerdict::Untouched | PreviewVerdict::NoEffect) => {
                (State::Success, "nothing to approve".to_owned())
            }
            (None, _) => (State::Pending, "there is no plan to approve".to_owned()),
        };
        let status = Status { context, state, description: fitted_line(&description, characters), link: None };
        TargetPosting { status, comment: None, check: None }
    }
}
