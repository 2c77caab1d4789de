//! Pull requests that were merged: what came of their plans goes into the comment that had shown them.
//!
//! Nothing is kept but on the forge: a process that begins anew asks once which ones were merged within a day.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::ReviewPorts;
use super::approvals::{Given, given, is_of_approvals};
use super::repository::ReviewedRepository;
use super::rights::{self, Wish};
use super::two_people::TwoPeople;
use crate::api::node_plan::{NodePlan, NodePlanPhase};
use crate::ports::PortError;
use crate::ports::pull_requests::{Comment, History, PullRequest, PullRequests, SEAL_CHARACTERS, Seal};
use crate::render::posting::{ApprovedPlans, Outcome, Room, approved_by, is_settled, marker, previewed, with_outcome};

/// So long after its merge a pull request is followed.
const FOLLOWED_FOR: SignedDuration = SignedDuration::from_hours(24);
/// So long after everything was done; what a cluster made of a plan is known a while after it.
const SETTLED_FOR: SignedDuration = SignedDuration::from_hours(1);
/// In the first minutes there is something new at every look; later it is looked for less often.
const FIRST: SignedDuration = SignedDuration::from_mins(15);
const APART: SignedDuration = SignedDuration::from_mins(5);
/// Merged pull requests that are followed at once; of more, the last.
const FOLLOWED_MAX: usize = 30;

/// What is followed, by number.
#[derive(Default)]
pub struct Merged {
    followed: BTreeMap<u64, Followed>,
    has_asked: bool,
    looked_at: Option<Timestamp>,
}

struct Followed {
    pull_request: PullRequest,
    merged_as: String,
    until: Timestamp,
    since: Timestamp,
    /// By cluster: what was told last.
    told: BTreeMap<String, String>,
    /// When that changed, or this began.
    changed: Timestamp,
    is_settled: bool,
}

impl Followed {
    fn of(pull_request: PullRequest, now: Timestamp) -> Option<Self> {
        let merged_at = pull_request.merged_at.unwrap_or(now);
        Some(Self {
            merged_as: pull_request.merged_as.clone()?,
            pull_request,
            until: merged_at.saturating_add(FOLLOWED_FOR).unwrap_or(merged_at),
            since: now,
            told: BTreeMap::new(),
            changed: now,
            is_settled: false,
        })
    }

    fn is_over(&self, now: Timestamp) -> bool {
        now > self.until || (self.is_settled && now.duration_since(self.changed) > SETTLED_FOR)
    }
}

/// Looks at those that are followed. `closed`: numbers of pull requests that were open at the look before. Says whether all of it could
/// be done.
pub async fn look<P: ReviewPorts>(merged: &mut Merged, repository: &ReviewedRepository<P>, closed: &[u64]) -> bool {
    let is_complete = begin(merged, repository, closed).await;
    let now = repository.now();
    merged.followed.retain(|_, followed| !followed.is_over(now));
    while merged.followed.len() > FOLLOWED_MAX {
        merged.followed.pop_first();
    }
    let has_new = merged.followed.values().any(|it| now.duration_since(it.since) < FIRST);
    let is_due = merged.looked_at.is_none_or(|at| has_new || now < at || now.duration_since(at) >= APART);
    if merged.followed.is_empty() || !is_due {
        return is_complete;
    }
    merged.looked_at = Some(now);
    let clusters = match repository.node_plans().await {
        Ok(clusters) => clusters,
        Err(error) => {
            repository.complain("what came of merged pull requests can not be read", &error);
            return false;
        }
    };
    let mut is_complete = is_complete;
    for followed in merged.followed.values_mut() {
        if let Err(error) = follow(followed, repository, &clusters).await {
            let number = followed.pull_request.number;
            repository.complain(&format!("what came of pull request {number} can not be written"), &error);
            is_complete = false;
        }
    }
    is_complete
}

/// Notes which pull requests were merged since the look before; at the first look, within a day.
async fn begin<P: ReviewPorts>(merged: &mut Merged, repository: &ReviewedRepository<P>, closed: &[u64]) -> bool {
    let mut found = Vec::new();
    let mut is_complete = true;
    if !merged.has_asked {
        match repository.forge().merged_pull_requests().await {
            Ok(lately) => {
                found.extend(lately);
                merged.has_asked = true;
            }
            Err(error) => {
                repository.complain("the merged pull requests can not be read", &error);
                is_complete = false;
            }
        }
    }
    for number in closed {
        match repository.forge().pull_request(*number).await {
            Ok(pull_request) => found.push(pull_request),
            Err(error) => {
                repository.complain(&format!("what became of pull request {number} can not be read"), &error);
                // All of them are asked for at the next look.
                merged.has_asked = false;
                is_complete = false;
            }
        }
    }
    for pull_request in found {
        let number = pull_request.number;
        if let Some(followed) = Followed::of(pull_request, repository.now()) {
            merged.followed.entry(number).or_insert(followed);
        }
    }
    is_complete
}

async fn follow<P: ReviewPorts>(
    followed: &mut Followed,
    repository: &ReviewedRepository<P>,
    clusters: &[(String, Vec<NodePlan>)],
) -> Result<(), PortError> {
    let base = &followed.pull_request.base_reference;
    let mut comments = None;
    let mut is_done = true;
    for (cluster, plans) in clusters {
        let plans = of_merge(repository, &followed.merged_as, base, plans).await;
        is_done &= is_settled(&plans);
        let cluster = if cluster.is_empty() { cluster_of(&plans) } else { cluster.to_owned() };
        let key = Outcome { merged_as: &followed.merged_as, plans: &plans, previewed: None, approved: &[] }.text();
        if plans.is_empty() || followed.told.get(&cluster) == Some(&key) {
            continue;
        }
        let comments = match &comments {
            Some(comments) => comments,
            None => comments.insert(Comments::read(repository, followed.pull_request.number).await?),
        };
        if tell(repository, followed, &cluster, &plans, comments).await? {
            followed.told.insert(cluster, key);
            followed.changed = repository.now();
        }
    }
    followed.is_settled = is_done;
    Ok(())
}

/// The comments on a pull request.
struct Comments {
    /// Those of this program.
    own: Vec<Comment>,
    given: Vec<Given>,
}

impl Comments {
    async fn read<P: ReviewPorts>(repository: &ReviewedRepository<P>, number: u64) -> Result<Self, PortError> {
        let mut all = repository.forge().comments(number).await?;
        repository.forge().tell_edits(&mut all, |comment| is_of_approvals(comment, repository.name())).await?;
        let account = &repository.forge().account().await?;
        let is_ours = |comment: &Comment| repository.forge().is_by(comment, account);
        let given = given(&all, repository.name(), is_ours);
        let own = all.iter().filter(|comment| is_ours(comment)).cloned().collect();
        Ok(Self { own, given })
    }
}

/// Approves what was approved before, and writes what came of the plans. Says whether nothing is left to do for what is known now.
async fn tell<P: ReviewPorts>(
    repository: &ReviewedRepository<P>,
    followed: &Followed,
    cluster: &str,
    plans: &[&NodePlan],
    comments: &Comments,
) -> Result<bool, PortError> {
    let Followed { pull_request, merged_as, .. } = followed;
    let number = pull_request.number;
    let given = that_count(repository, pull_request, plans, comments).await?;
    let is_complete = approve(repository, number, plans, &given).await?;
    let approved: Vec<ApprovedPlans> = given.iter().map(|it| it.plans.clone()).collect();
    let marker = marker(cluster, repository.environment(), repository.name());
    let is_marked = |it: &&Comment| it.body.lines().next().is_some_and(|line| line.trim_end() == marker);
    let Some(comment) = comments.own.iter().rfind(is_marked) else { return Ok(is_complete) };
    let previewed = previewed(&comment.body);
    let outcome = Outcome { merged_as, plans, previewed: previewed.as_deref(), approved: &approved };
    let (forge, room) = (repository.forge(), repository.room());
    let room = Room { characters: room.characters - SEAL_CHARACTERS, bytes: room.bytes - SEAL_CHARACTERS };
    let body = match forge.seal_of(&comment.body) {
        Seal::Whole => forge.sealed(&with_outcome(&forge.unsealed(&comment.body), &outcome, room)),
        // Of a version that made none.
        Seal::Missing => with_outcome(&comment.body, &outcome, room),
        // Somebody wrote something else in the name of this program.
        Seal::Broken => {
            let first: Vec<&str> = comment.body.lines().take(2).collect();
            let body = format!(
                "{}\n\nThe preview that stood here was edited by somebody, and is left out.\n",
                first.join("\n")
            );
            forge.sealed(&with_outcome(&body, &outcome, room))
        }
    };
    if body.trim_end() != comment.body.replace("\r\n", "\n").trim_end() {
        forge.edit_comment(number, comment.id, &body).await?;
        repository.say(&format!("pull request {number}, merged as {merged_as}: what came of it in {cluster} is told"));
    }
    Ok(is_complete)
}

/// The approvals that were given for the head that was merged, and where two people are asked for by none who made it.
async fn that_count<'c, P: ReviewPorts>(
    repository: &ReviewedRepository<P>,
    pull_request: &PullRequest,
    plans: &[&NodePlan],
    comments: &'c Comments,
) -> Result<Vec<&'c Given>, PortError> {
    let by_plan = plans.iter().any(|plan| !plan.spec.not_approved_by.is_empty());
    let mut two_people = TwoPeople::new(repository.rules()).or_asked_for(by_plan);
    let mut counting = Vec::new();
    for given in comments.given.iter().filter(|it| it.plans.head == pull_request.head) {
        match two_people.refusal(repository.forge(), pull_request, &given.plans.by).await? {
            None => counting.push(given),
            Some(why) => repository.say(&format!(
                "the approval of {} on pull request {} does not count: {why}",
                given.plans.by, pull_request.number
            )),
        }
    }
    Ok(counting)
}

/// Approves the plans that wait and are those that were approved on the pull request by somebody who still may, where that is asked for.
/// What is refused is said, and tried at the next look.
async fn approve<P: ReviewPorts>(
    repository: &ReviewedRepository<P>,
    number: u64,
    plans: &[&NodePlan],
    given: &[&Given],
) -> Result<bool, PortError> {
    let waits = |plan: &NodePlan| {
        plan.status.as_ref().is_some_and(|status| status.phase == NodePlanPhase::WaitsForApproval)
            && plan.approver().is_none()
    };
    let mut is_complete = true;
    for plan in plans.iter().filter(|plan| repository.rules().approve_merged && waits(plan)) {
        let name = plan.metadata.name.as_deref().unwrap_or_default();
        let mut by = None;
        for (approver, id) in
            given.iter().filter_map(|it| Some((approved_by(plan, std::slice::from_ref(&it.plans))?, it.author_id)))
        {
            match rights::refusal(repository.forge(), repository.rules(), (approver, id), Wish::Approve).await? {
                None => by = Some(approver),
                Some(why) => {
                    repository.say(&format!(
                        "nodeplan {name} is not approved by {approver}, as on pull request {number}: {why}"
                    ));
                    is_complete = false;
                }
            }
        }
        let Some(by) = by else { continue };
        let on = format!("pull request {number} by {by}");
        match repository.approve(name, &on).await {
            Ok(()) => repository.say(&format!("nodeplan {name} is approved, as {by} did on pull request {number}")),
            Err(error) => {
                repository.complain(&format!("nodeplan {name} can not be approved"), &error);
                is_complete = false;
            }
        }
    }
    Ok(is_complete)
}

/// The cluster that plans say they are for.
fn cluster_of(plans: &[&NodePlan]) -> String {
    let named = plans.iter().find_map(|plan| plan.spec.plan.as_ref()?["cluster"].as_str());
    named.unwrap_or_default().to_owned()
}

/// The plans of the commit, or else of the first revision after it of which there are some. Oldest first.
async fn of_merge<'p, P: ReviewPorts>(
    repository: &ReviewedRepository<P>,
    merged_as: &str,
    base: &str,
    plans: &'p [NodePlan],
) -> Vec<&'p NodePlan> {
    let mut plans: Vec<&NodePlan> = plans.iter().filter(|plan| plan.page_number().is_none()).collect();
    plans.sort_by(|one, two| one.spec.generated_for.cmp(&two.spec.generated_for));
    let of = |revision: &str| -> Vec<&'p NodePlan> {
        plans.iter().copied().filter(|plan| plan.spec.revision.id == revision).collect()
    };
    let own = of(merged_as);
    if !own.is_empty() {
        return own;
    }
    // Where it can not be fetched, the next look does.
    if let Err(error) = repository.history().fetch(&format!("refs/heads/{base}")).await {
        repository.complain("a base can not be fetched", &error);
        return Vec::new();
    }
    let later = plans.iter().find(|plan| repository.history().contains(&plan.spec.revision.id, merged_as));
    later.map(|plan| of(&plan.spec.revision.id)).unwrap_or_default()
}
