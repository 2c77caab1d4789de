//! A repository on a forge as the port by which reviews reach it. What went wrong is one sentence there, with its causes.

use hyper::StatusCode;
use jiff::Timestamp;

use super::hosted::{ForgeError, HostedRepository};
use super::{posting, seal};
use crate::ports::pull_requests::{
    Comment, Makers, Membership, Posted, Posting, PullRequest, PullRequests, Right, Seal, Status, Table, Team,
};
use crate::ports::{PortError, PortErrorKind, chain};

impl From<ForgeError> for PortError {
    fn from(error: ForgeError) -> Self {
        let kind = match error.status() {
            _ if error.is_denied() => PortErrorKind::Denied,
            _ if error.may_pass() => PortErrorKind::Temporary,
            Some(StatusCode::NOT_FOUND) => PortErrorKind::NotFound,
            _ => PortErrorKind::Permanent,
        };
        Self { operation: chain(&error), kind, source: None }
    }
}

impl PullRequests for HostedRepository {
    fn table(&self) -> &'static Table {
        Self::table(self)
    }

    async fn open_pull_requests(&self) -> Result<Option<Vec<PullRequest>>, PortError> {
        Ok(Self::open_pull_requests(self).await?)
    }

    async fn pull_request(&self, number: u64) -> Result<PullRequest, PortError> {
        Ok(Self::pull_request(self, number).await?)
    }

    async fn merged_pull_requests(&self) -> Result<Vec<PullRequest>, PortError> {
        Ok(Self::merged_pull_requests(self).await?)
    }

    fn head_reference(&self, number: u64) -> String {
        Self::head_reference(self, number)
    }

    fn queue(&self, base: &str) -> Option<String> {
        Self::queue(self, base)
    }

    fn queued(&self, base: &str, reference: &str) -> Option<u64> {
        Self::queued(self, base, reference)
    }

    async fn comments(&self, number: u64) -> Result<Vec<Comment>, PortError> {
        Ok(Self::comments(self, number).await?)
    }

    async fn tell_edits(&self, comments: &mut [Comment], matters: impl Fn(&Comment) -> bool) -> Result<(), PortError> {
        Ok(Self::tell_edits(self, comments, matters).await?)
    }

    async fn account(&self) -> Result<String, PortError> {
        Ok(Self::account(self).await?.to_owned())
    }

    fn is_by(&self, comment: &Comment, account: &str) -> bool {
        Self::is_by(self, comment, account)
    }

    async fn create_comment(&self, number: u64, body: &str) -> Result<Comment, PortError> {
        Ok(Self::create_comment(self, number, body).await?)
    }

    async fn edit_comment(&self, number: u64, id: u64, body: &str) -> Result<(), PortError> {
        Ok(Self::edit_comment(self, number, id, body).await?)
    }

    async fn remove_comment(&self, number: u64, id: u64) -> Result<(), PortError> {
        Ok(Self::remove_comment(self, number, id).await?)
    }

    fn seal_of(&self, body: &str) -> Seal {
        seal::seal_of(body)
    }

    fn sealed(&self, body: &str) -> String {
        seal::sealed(body)
    }

    fn unsealed(&self, body: &str) -> String {
        seal::unsealed(body)
    }

    async fn permission(&self, author: &str, author_id: u64) -> Result<Option<Right>, PortError> {
        match Self::permission(self, author, author_id).await {
            Ok(right) => Ok(Some(right)),
            Err(error) if error.is_denied() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn membership(&self, team: &Team, author: &str, author_id: u64) -> Result<Membership, PortError> {
        match self.is_in_team(team, author, author_id).await {
            Ok(true) => Ok(Membership::Member),
            Ok(false) => Ok(Membership::NoMember),
            Err(error @ ForgeError::TeamNotTold { .. }) => Ok(Membership::NotTold(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    async fn makers(&self, pull_request: &PullRequest) -> Result<Makers, PortError> {
        Ok(Self::makers(self, pull_request).await?)
    }

    async fn set_status(&self, commit: &str, status: &Status) -> Result<(), PortError> {
        Ok(Self::set_status(self, commit, status).await?)
    }

    async fn first_status(&self, commit: &str, contexts: &[String]) -> Result<Option<Timestamp>, PortError> {
        Ok(Self::first_status(self, commit, contexts).await?)
    }

    fn lacks_place(&self, commit: &str) -> bool {
        Self::lacks_place(self, commit)
    }

    async fn announce(
        &self,
        commit: &str,
        status: &Status,
        known: &mut Option<Vec<Status>>,
    ) -> Result<bool, PortError> {
        Ok(posting::announce(self, commit, status, known).await?)
    }

    async fn post(&self, posting: &Posting) -> Posted {
        let Posted { done, failed } = posting::post(self, posting).await;
        let failed = failed.into_iter().map(|(context, what, error)| (context, what, error.into())).collect();
        Posted { done, failed }
    }
}
