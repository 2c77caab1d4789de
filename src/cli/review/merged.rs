//! Pull requests that were merged: what came of their plans goes into the comment that had shown them.
//!
//! Nothing is kept but on the forge: a process that begins anew asks once which ones were merged within a day.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use super::approvals::{Given, given, is_of_approvals};
use super::rights::{self, Wish};
use super::rounds::Rounds;
use super::two_people::TwoPeople;
use crate::adapters::forge::{Comment, ForgeError, PullRequest, SEAL_CHARACTERS, Seal, seal_of, sealed, unsealed};
use crate::api::node_plan::{NodePlan, NodePlanPhase};
use crate::cli::output;
use crate::render::posting::{ApprovedPlans, Outcome, Room, approved_by, is_settled, marker, previewed, with_outcome};

/// So long after its merge a pull request is followed.
const FOLLOWED_FOR: SignedDuration = SignedDuration::from_hours(24);
/// So long after everything was done; what a cluster made of a plan is known a while after it.
const SETTLED_FOR: Duration = Duration::from_hours(1);
/// In the first minutes there is something new at every look; later it is looked for less often.
const FIRST: Duration = Duration::from_mins(15);
const APART: Duration = Duration::from_mins(5);
/// Merged pull requests that are followed at once; of more, the last.
const FOLLOWED_MAX: usize = 30;

/// What is followed, by number.
#[derive(Default)]
pub struct Merged {
    followed: BTreeMap<u64, Followed>,
    has_asked: bool,
    looked_at: Option<Instant>,
}

struct Followed {
    pull_request: PullRequest,
    merged_as: String,
    until: Timestamp,
    since: Instant,
    /// By cluster: what was told last.
    told: BTreeMap<String, String>,
    /// When that changed, or this began.
    changed: Instant,
    is_settled: bool,
}

impl Followed {
    fn of(pull_request: PullRequest) -> Option<Self> {
        let merged_at = pull_request.merged_at.unwrap_or_else(Timestamp::now);
        let now = Instant::now();
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
        now > self.until || (self.is_settled && self.changed.elapsed() > SETTLED_FOR)
    }
}

/// Looks at those that are followed. `closed`: numbers of pull requests that were open at the look before. Says whether all of it could
/// be done.
pub async fn look(rounds: &mut Rounds, closed: &[u64]) -> bool {
    let is_complete = begin(rounds, closed).await;
    let now = Timestamp::now();
    let merged = rounds.merged();
    merged.followed.retain(|_, followed| !followed.is_over(now));
    while merged.followed.len() > FOLLOWED_MAX {
        merged.followed.pop_first();
    }
    let has_new = merged.followed.values().any(|it| it.since.elapsed() < FIRST);
    let is_due = merged.looked_at.is_none_or(|at| has_new || at.elapsed() >= APART);
    if merged.followed.is_empty() || !is_due {
        return is_complete;
    }
    merged.looked_at = Some(Instant::now());
    let clusters = match rounds.node_plans().await {
        Ok(clusters) => clusters,
        Err(failure) => {
            output::say(&format!("what came of merged pull requests can not be read: {:#}", failure.error));
            return false;
        }
    };
    let mut is_complete = is_complete;
    for number in rounds.merged().followed.keys().copied().collect::<Vec<_>>() {
        if let Err(error) = follow(rounds, number, &clusters).await {
            rounds.said().complain(&format!("what came of pull request {number} can not be written"), &error);
            is_complete = false;
        }
    }
    is_complete
}

/// Notes which pull requests were merged since the look before; at the first look, within a day.
async fn begin(rounds: &mut Rounds, closed: &[u64]) -> bool {
    let mut found = Vec::new();
    let mut is_complete = true;
    if !rounds.merged().has_asked {
        match rounds.forge().merged_pull_requests().await {
            Ok(merged) => {
                found.extend(merged);
                rounds.merged().has_asked = true;
            }
            Err(error) => {
                rounds.said().complain("the merged pull requests can not be read", &error);
                is_complete = false;
            }
        }
    }
    for number in closed {
        match rounds.forge().pull_request(*number).await {
            Ok(pull_request) => found.push(pull_request),
            Err(error) => {
                rounds.said().complain(&format!("what became of pull request {number} can not be read"), &error);
                // All of them are asked for at the next look.
                rounds.merged().has_asked = false;
                is_complete = false;
            }
        }
    }
    for pull_request in found {
        let number = pull_request.number;
        if let Some(followed) = Followed::of(pull_request) {
            rounds.merged().followed.entry(number).or_insert(followed);
        }
    }
    is_complete
}

async fn follow(rounds: &mut Rounds, number: u64, clusters: &[(String, Vec<NodePlan>)]) -> Result<(), ForgeError> {
    let Some(followed) = rounds.merged().followed.get(&number) else { return Ok(()) };
    let (merged_as, base) = (followed.merged_as.clone(), followed.pull_request.base_reference.clone());
    let mut comments = None;
    let mut is_done = true;
    for (cluster, plans) in clusters {
        let plans = of_merge(rounds, &merged_as, &base, plans).await;
        is_done &= is_settled(&plans);
        let cluster = if cluster.is_empty() { cluster_of(&plans) } else { cluster.to_owned() };
        let key = Outcome { merged_as: &merged_as, plans: &plans, previewed: None, approved: &[] }.text();
        let known = rounds.merged().followed.get(&number).and_then(|it| it.told.get(&cluster));
        if plans.is_empty() || known == Some(&key) {
            continue;
        }
        let comments = match &comments {
            Some(comments) => comments,
            None => comments.insert(Comments::read(rounds, number).await?),
        };
        let is_told = tell(rounds, (number, &merged_as), &cluster, &plans, comments).await?;
        if let Some(followed) = rounds.merged().followed.get_mut(&number).filter(|_| is_told) {
            followed.told.insert(cluster, key);
            followed.changed = Instant::now();
        }
    }
    if let Some(followed) = rounds.merged().followed.get_mut(&number) {
        followed.is_settled = is_done;
    }
    Ok(())
}

/// The comments on a pull request.
struct Comments {
    /// Those of this program.
    own: Vec<Comment>,
    given: Vec<Given>,
}

impl Comments {
    async fn read(rounds: &Rounds, number: u64) -> Result<Self, ForgeError> {
        let mut all = rounds.forge().comments(number).await?;
        rounds.forge().tell_edits(&mut all, |comment| is_of_approvals(comment, rounds.name())).await?;
        let account = rounds.forge().account().await?;
        let is_ours = |comment: &Comment| rounds.forge().is_by(comment, account);
        let given = given(&all, rounds.name(), is_ours);
        let own = all.iter().filter(|comment| is_ours(comment)).cloned().collect();
        Ok(Self { own, given })
    }
}

/// Approves what was approved before, and writes what came of the plans. Says whether nothing is left to do for what is known now.
async fn tell(
    rounds: &mut Rounds,
    (number, merged_as): (u64, &str),
    cluster: &str,
    plans: &[&NodePlan],
    comments: &Comments,
) -> Result<bool, ForgeError> {
    let pull_request = rounds.merged().followed.get(&number).map(|it| it.pull_request.clone()).unwrap_or_default();
    let given = that_count(rounds, &pull_request, plans, comments).await?;
    let is_complete = approve(rounds, number, plans, &given).await?;
    let approved: Vec<ApprovedPlans> = given.iter().map(|it| it.plans.clone()).collect();
    let marker = marker(cluster, rounds.environment(), rounds.name());
    let is_marked = |it: &&Comment| it.body.lines().next().is_some_and(|line| line.trim_end() == marker);
    let Some(comment) = comments.own.iter().rfind(is_marked) else { return Ok(is_complete) };
    let previewed = previewed(&comment.body);
    let outcome = Outcome { merged_as, plans, previewed: previewed.as_deref(), approved: &approved };
    let room = rounds.room();
    let room = Room { characters: room.characters - SEAL_CHARACTERS, bytes: room.bytes - SEAL_CHARACTERS };
    let body = match seal_of(&comment.body) {
        Seal::Whole => sealed(&with_outcome(&unsealed(&comment.body), &outcome, room)),
        // Of a version that made none.
        Seal::Missing => with_outcome(&comment.body, &outcome, room),
        // Somebody wrote something else in the name of this program.
        Seal::Broken => {
            let first: Vec<&str> = comment.body.lines().take(2).collect();
            let body = format!(
                "{}\n\nThe preview that stood here was edited by somebody, and is left out.\n",
                first.join("\n")
            );
            sealed(&with_outcome(&body, &outcome, room))
        }
    };
    if body.trim_end() != comment.body.replace("\r\n", "\n").trim_end() {
        rounds.forge().edit_comment(number, comment.id, &body).await?;
        output::say(&format!("pull request {number}, merged as {merged_as}: what came of it in {cluster} is told"));
    }
    Ok(is_complete)
}

/// The approvals that were given for the head that was merged, and where two people are asked for by none who made it.
async fn that_count<'c>(
    rounds: &Rounds,
    pull_request: &PullRequest,
    plans: &[&NodePlan],
    comments: &'c Comments,
) -> Result<Vec<&'c Given>, ForgeError> {
    let by_plan = plans.iter().any(|plan| !plan.spec.not_approved_by.is_empty());
    let mut two_people = TwoPeople::new(rounds.manner()).or_asked_for(by_plan);
    let mut counting = Vec::new();
    for given in comments.given.iter().filter(|it| it.plans.head == pull_request.head) {
        match two_people.refusal(rounds.forge(), pull_request, &given.plans.by).await? {
            None => counting.push(given),
            Some(why) => output::say(&format!(
                "the approval of {} on pull request {} does not count: {why}",
                given.plans.by, pull_request.number
            )),
        }
    }
    Ok(counting)
}

/// Approves the plans that wait and are those that were approved on the pull request by somebody who still may, where that is asked for.
/// What is refused is said, and tried at the next look.
async fn approve(rounds: &Rounds, number: u64, plans: &[&NodePlan], given: &[&Given]) -> Result<bool, ForgeError> {
    let waits = |plan: &NodePlan| {
        plan.status.as_ref().is_some_and(|status| status.phase == NodePlanPhase::WaitsForApproval)
            && plan.approver().is_none()
    };
    let mut is_complete = true;
    for plan in plans.iter().filter(|plan| rounds.manner().approve_merged && waits(plan)) {
        let name = plan.metadata.name.as_deref().unwrap_or_default();
        let mut by = None;
        for (approver, id) in
            given.iter().filter_map(|it| Some((approved_by(plan, std::slice::from_ref(&it.plans))?, it.author_id)))
        {
            match rights::refusal(rounds.forge(), rounds.manner(), (approver, id), Wish::Approve).await? {
                None => by = Some(approver),
                Some(why) => {
                    output::say(&format!(
                        "nodeplan {name} is not approved by {approver}, as on pull request {number}: {why}"
                    ));
                    is_complete = false;
                }
            }
        }
        let Some(by) = by else { continue };
        let on = format!("pull request {number} by {by}");
        match rounds.approve(name, &on).await {
            Ok(()) => output::say(&format!("nodeplan {name} is approved, as {by} did on pull request {number}")),
            Err(failure) => {
                output::say(&format!("nodeplan {name} can not be approved: {:#}", failure.error));
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
async fn of_merge<'p>(rounds: &Rounds, merged_as: &str, base: &str, plans: &'p [NodePlan]) -> Vec<&'p NodePlan> {
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
    if let Err(error) = rounds.histories().fetch(&format!("refs/heads/{base}")).await {
        rounds.said().complain("a base can not be fetched", &error);
        return Vec::new();
    }
    let later = plans.iter().find(|plan| rounds.histories().contains(&plan.spec.revision.id, merged_as));
    later.map(|plan| of(&plan.spec.revision.id)).unwrap_or_default()
}
