//! Of two people who are asked for, one made the change and the other approves it.

use super::ReviewRules;
use crate::ports::PortError;
use crate::ports::pull_requests::{Makers, PullRequest, PullRequests};

/// Whether two are asked for, and who made the commits, which is asked once.
pub struct TwoPeople {
    are_asked_for: bool,
    /// Who pushed may be unknown: the operator says so.
    with_unknown_pushers: bool,
    makers: Option<Makers>,
}

impl TwoPeople {
    pub fn new(rules: &ReviewRules) -> Self {
        Self {
            are_asked_for: rules.require_two_people,
            with_unknown_pushers: rules.allow_unknown_pushers,
            makers: None,
        }
    }

    /// Asked for by something else, too, such as a plan in the cluster.
    pub fn or_asked_for(self, are_asked_for: bool) -> Self {
        Self { are_asked_for: self.are_asked_for || are_asked_for, ..self }
    }

    /// Why an approval by somebody does not count, if it does not.
    pub async fn refusal<F: PullRequests>(
        &mut self,
        forge: &F,
        pull_request: &PullRequest,
        by: &str,
    ) -> Result<Option<String>, PortError> {
        if !self.are_asked_for {
            return Ok(None);
        }
        if by.eq_ignore_ascii_case(&pull_request.author) {
            return Ok(Some("an approval must come from somebody else than the author".to_owned()));
        }
        let makers = match &self.makers {
            Some(makers) => makers,
            None => self.makers.insert(forge.makers(pull_request).await?),
        };
        Ok(makers.refusal(by, self.with_unknown_pushers))
    }
}
