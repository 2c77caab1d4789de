//! What people elsewhere are told: from events and plans to notifications, each once for the same thing.
//!
//! A plan that waits is the same thing for as long as it asks for the same. A halted roll-out and a budget that is used up are states:
//! each is told when it begins, and again only after it was over for a while. What was told is known by keys, which outlive the process
//! ([`Outbox::told`]); what was not is found again by the next one, since plans that wait are posted anew and states are seen at every plan.

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};

use crate::api::node_plan::Fidelity;
use crate::api::notification::{Notification, NotificationDetail, NotificationKind, VERSION};
use crate::controller::events::Event;
use crate::controller::plans::records::{name_of, price_change};
use crate::core::plan::{BudgetState, HeldBack, NoteCode, Plan};
use crate::core::preview::digest;
use crate::definitions::Masks;
use crate::ports::notifications::Told;
use crate::render::terminal::clean;

/// Plans that wait follow one another on a busy cluster: one message in so long, with the newest.
const WAITS_APART: SignedDuration = SignedDuration::from_mins(10);
/// So long a roll-out must have gone on until its next halt is another one.
const HALT_OVER_AFTER: SignedDuration = SignedDuration::from_mins(2);
/// A budget is used up and free again with each wave of a roll-out: that is one thing.
const BUDGET_OVER_AFTER: SignedDuration = SignedDuration::from_hours(1);
/// What is still to be told. There is one of each state and one plan that waits; plans that were applied may be more.
const PENDING_MAX: usize = 100;
/// What is known to have been told; of more the oldest is forgotten. They are kept in an annotation.
const TOLD_MAX: usize = 200;
/// Plans that were posted lately, by which events are understood.
const POSTED_MAX: usize = 16;
/// Of one text.
const TEXT_CHARACTERS_MAX: usize = 4_000;

/// What is to be told to one receiver.
pub struct Outbox {
    kinds: Vec<NotificationKind>,
    installation: String,
    masks: Masks,
    told: Told,
    /// By topic: of one topic only the newest is told.
    pending: BTreeMap<String, Notification>,
    posted: VecDeque<Posted>,
    /// States that were told and are not so at the moment: since when.
    over_since: BTreeMap<String, Timestamp>,
    dropped: u64,
}

/// What is remembered of a plan that was posted.
struct Posted {
    plan_id: String,
    cluster: String,
    revision: String,
    nodes_created: usize,
    nodes_removed: usize,
    price_change: String,
    digest: String,
}

impl Outbox {
    /// `masks`: what is not said.
    pub fn new(kinds: &[NotificationKind], installation: &str, masks: Masks) -> Self {
        Self {
            kinds: kinds.to_vec(),
            installation: installation.to_owned(),
            masks,
            told: Told::new(),
            pending: BTreeMap::new(),
            posted: VecDeque::new(),
            over_since: BTreeMap::new(),
            dropped: 0,
        }
    }

    /// What processes before this one have told.
    pub fn remember(&mut self, told: Told) {
        self.told.extend(told);
        let told = &self.told;
        self.pending.retain(|_, notification| !told.contains_key(&notification.key));
    }

    pub fn told(&self) -> &Told {
        &self.told
    }

    /// How many were left out, because too many waited.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// A plan was made, whether or not it is posted. Says whether there is something new to tell, or to forget.
    pub fn planned(&mut self, plan: &Plan, now: Timestamp) -> bool {
        let states: Vec<Notification> = halted(plan).chain(used_up(plan)).collect();
        let mut has_news = false;
        for state in states {
            self.over_since.remove(&state.key);
            has_news |= self.offer(state.key.clone(), state, now);
        }
        has_news | self.end_states(plan, now)
    }

    /// Forgets what was told of states that are over.
    fn end_states(&mut self, plan: &Plan, now: Timestamp) -> bool {
        let lasting: Vec<String> = halted(plan).chain(used_up(plan)).map(|state| state.key).collect();
        let is_state = |key: &str| key_over_after(key).is_some() && !lasting.iter().any(|it| it == key);
        // Nobody needs to hear of what has passed.
        self.pending.retain(|topic, _| !is_state(topic));
        let mut forgotten = Vec::new();
        for key in self.told.keys().filter(|key| is_state(key)) {
            let since = *self.over_since.entry(key.clone()).or_insert(now);
            if key_over_after(key).is_some_and(|after| now.duration_since(since) >= after) {
                forgotten.push(key.clone());
            }
        }
        for key in &forgotten {
            self.told.remove(key);
            self.over_since.remove(key);
        }
        !forgotten.is_empty()
    }

    /// Something happened. Says whether there is something new to tell.
    pub fn heard(&mut self, event: &Event, now: Timestamp) -> bool {
        match event {
            Event::PlanPosted { plan, .. } => {
                self.posted.push_back(Posted::of(plan));
                if self.posted.len() > POSTED_MAX {
                    self.posted.pop_front();
                }
                false
            }
            Event::WaitsForApproval { plan_id, moves, rules } => {
                let Some(notification) = self.posted(plan_id).map(|plan| plan.waits(moves, rules)) else {
                    return false;
                };
                self.offer(NotificationKind::PlanWaits.word().to_owned(), notification, now)
            }
            Event::Approved { plan_id, .. } => {
                self.waits_no_more(plan_id);
                false
            }
            Event::PlanSuperseded { plan_id, move_number, refusal } => {
                self.waits_no_more(plan_id);
                let Some(number) = move_number else { return false };
                let text =
                    format!("Move {number} was not begun: {refusal}. What the plan still wants is planned anew.");
                let failed = self.posted(plan_id).map(|plan| plan.failed(text));
                failed.is_some_and(|failed| self.offer(failed.key.clone(), failed, now))
            }
            Event::PlanFulfilled { plan_id, fidelity } => {
                let applied = self.posted(plan_id).map(|plan| plan.applied(fidelity));
                applied.is_some_and(|applied| self.offer(applied.key.clone(), applied, now))
            }
            _ => false,
        }
    }

    fn posted(&self, plan_id: &str) -> Option<&Posted> {
        self.posted.iter().rev().find(|posted| posted.plan_id == plan_id)
    }

    fn waits_no_more(&mut self, plan_id: &str) {
        let name = name_of(plan_id);
        self.pending.retain(|topic, notification| {
            topic != NotificationKind::PlanWaits.word() || notification.plan.as_deref() != Some(name)
        });
    }

    fn offer(&mut self, topic: String, notification: Notification, now: Timestamp) -> bool {
        if !self.kinds.contains(&notification.kind) {
            return false;
        }
        if self.told.contains_key(&notification.key) {
            // An older one of the topic is out of date.
            self.pending.remove(&topic);
            return false;
        }
        let known = self.pending.get(&topic);
        let at =
            known.filter(|known| known.key == notification.key).map_or_else(|| now.to_string(), |it| it.at.clone());
        let notification = Notification { at, installation: self.installation.clone(), ..notification };
        let notification = shown(notification, &self.masks);
        let is_new = self.pending.get(&topic) != Some(&notification);
        self.pending.insert(topic, notification);
        while self.pending.len() > PENDING_MAX {
            let oldest = self.pending.iter().min_by(|(_, one), (_, other)| one.at.cmp(&other.at));
            let Some(topic) = oldest.map(|(topic, _)| topic.clone()) else { break };
            self.pending.remove(&topic);
            self.dropped += 1;
        }
        is_new
    }

    /// What is to be told next, oldest first.
    pub fn due(&self, now: Timestamp) -> Option<&Notification> {
        let due = self.pending.values().filter(|it| self.due_at(it).is_none_or(|at| now >= at));
        due.min_by(|one, other| one.at.cmp(&other.at))
    }

    /// When something is to be told that is not yet.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.pending.values().filter_map(|it| self.due_at(it)).min()
    }

    fn due_at(&self, notification: &Notification) -> Option<Timestamp> {
        if notification.kind != NotificationKind::PlanWaits {
            return None;
        }
        let last =
            self.told.iter().filter(|(key, _)| is_of(key, NotificationKind::PlanWaits)).map(|(_, at)| *at).max()?;
        last.saturating_add(WAITS_APART).ok()
    }

    /// It was told, or never can be.
    pub fn done(&mut self, key: &str, now: Timestamp) {
        self.pending.retain(|_, notification| notification.key != key);
        self.told.insert(key.to_owned(), now);
        while self.told.len() > TOLD_MAX {
            let oldest = self.told.iter().min_by_key(|(_, at)| **at).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            self.told.remove(&oldest);
        }
    }
}

fn is_of(key: &str, kind: NotificationKind) -> bool {
    key.strip_prefix(kind.word()).is_some_and(|rest| rest.starts_with('/'))
}

/// How long a state must have been over until it may begin anew; `None`: it is no state.
fn key_over_after(key: &str) -> Option<SignedDuration> {
    if is_of(key, NotificationKind::RolloutHalted) {
        return Some(HALT_OVER_AFTER);
    }
    is_of(key, NotificationKind::BudgetReached).then_some(BUDGET_OVER_AFTER)
}

/// Names and sentences come from the cluster: no control characters, nothing that is hidden, nothing without end.
fn shown(notification: Notification, masks: &Masks) -> Notification {
    let text = |text: &str| -> String { clean(&masks.text(text)).chars().take(TEXT_CHARACTERS_MAX).collect() };
    let one = |it: &Option<String>| it.as_deref().map(text);
    let detail = |it: &NotificationDetail| NotificationDetail { name: it.name.clone(), value: text(&it.value) };
    Notification {
        cluster: text(&notification.cluster),
        title: text(&notification.title),
        text: text(&notification.text),
        node_pool: one(&notification.node_pool),
        budget: one(&notification.budget),
        revision: one(&notification.revision),
        details: notification.details.iter().map(detail).collect(),
        ..notification
    }
}

fn notification(kind: NotificationKind, subject: &str, cluster: &str) -> Notification {
    Notification {
        version: VERSION,
        kind,
        key: format!("{}/{subject}", kind.word()),
        installation: String::new(),
        cluster: cluster.to_owned(),
        at: String::new(),
        title: String::new(),
        text: String::new(),
        plan: None,
        node_pool: None,
        budget: None,
        revision: None,
        details: Vec::new(),
    }
}

impl Posted {
    fn of(plan: &Plan) -> Self {
        Self {
            plan_id: plan.id.clone(),
            cluster: plan.cluster.clone(),
            revision: plan.revision.id.clone(),
            nodes_created: plan.summary.nodes_created,
            nodes_removed: plan.summary.nodes_removed,
            price_change: price_change(plan),
            digest: asked(plan),
        }
    }

    fn about(&self, kind: NotificationKind, subject: &str, title: &str, text: String) -> Notification {
        let name = name_of(&self.plan_id);
        Notification {
            title: format!("{}: {title}", self.cluster),
            text,
            plan: Some(name.to_owned()),
            revision: Some(self.revision.clone()),
            details: vec![
                NotificationDetail::new("Plan", name),
                NotificationDetail::new("Nodes created", self.nodes_created),
                NotificationDetail::new("Nodes removed", self.nodes_removed),
                NotificationDetail::new("Price change", &self.price_change),
                NotificationDetail::new("Revision", &self.revision),
            ],
            ..notification(kind, subject, &self.cluster)
        }
    }

    fn waits(&self, moves: &[u32], rules: &[String]) -> Notification {
        let numbers: Vec<String> = moves.iter().map(u32::to_string).collect();
        let mut sentences = Vec::new();
        match numbers.as_slice() {
            [] => {}
            [number] => sentences.push(format!("Move {number} waits.")),
            numbers => sentences.push(format!("Moves {} wait.", numbers.join(", "))),
        }
        sentences.extend(rules.iter().map(|rule| format!("When it is approved: {rule}.")));
        sentences.push(format!("Approve it with `cutlist approve {}`.", name_of(&self.plan_id)));
        // The same for the same plan, whichever process made it, and at whichever moment.
        let subject = format!("{}/{}", first(&self.revision), first(&self.digest));
        self.about(NotificationKind::PlanWaits, &subject, "a plan waits for approval", sentences.join(" "))
    }

    fn failed(&self, text: String) -> Notification {
        let subject = name_of(&self.plan_id);
        self.about(NotificationKind::PlanFailed, subject, "a plan was stopped on its way", text)
    }

    fn applied(&self, fidelity: &Fidelity) -> Notification {
        let text = format!(
            "{} of {} pods are where it said, {} of {} nodes are what it said; planned {}, launched {}.",
            fidelity.pods_as_planned,
            fidelity.pods_planned,
            fidelity.nodes_as_planned,
            fidelity.nodes_planned,
            fidelity.price_planned,
            fidelity.price_launched
        );
        self.about(NotificationKind::PlanApplied, name_of(&self.plan_id), "a plan is applied", text)
    }
}

/// What an approval of the plan is of: not who finds which place meanwhile.
fn asked(plan: &Plan) -> String {
    digest(&Plan { placements: Vec::new(), pending: Vec::new(), risks: Vec::new(), ..plan.clone() })
}

/// As much of a hash as tells two apart.
fn first(hash: &str) -> String {
    hash.chars().take(16).collect()
}

/// Roll-outs that are halted, as the plan's notes say.
fn halted(plan: &Plan) -> impl Iterator<Item = Notification> {
    let notes = plan.notes.iter().filter(|note| note.code == NoteCode::RolloutHalted);
    notes.filter_map(|note| {
        let pool = note.about.as_ref()?.name.as_str();
        Some(Notification {
            title: format!("{}: the rollout of NodePool {pool} is halted", plan.cluster),
            text: note.sentence(),
            node_pool: Some(pool.to_owned()),
            revision: Some(plan.revision.id.clone()),
            details: vec![
                NotificationDetail::new("NodePool", pool),
                NotificationDetail::new("Revision", &plan.revision.id),
            ],
            ..notification(NotificationKind::RolloutHalted, pool, &plan.cluster)
        })
    })
}

/// Budgets whose money has not enough left for a node that would go.
fn used_up(plan: &Plan) -> impl Iterator<Item = Notification> {
    plan.budgets.iter().filter_map(|budget| {
        let money = budget.money?;
        let mut held = plan.held_back.iter().filter(|it| is_held_by_money(it, budget)).peekable();
        let text = held.peek()?.text.clone();
        let count = held.count();
        let nodes = if count == 1 { "1 node stays".to_owned() } else { format!("{count} nodes stay") };
        Some(Notification {
            title: format!("{}: the money of budget {} is used up", plan.cluster, budget.name),
            text: format!("{nodes} that would go: {text}."),
            budget: Some(budget.name.clone()),
            details: vec![
                NotificationDetail::new("Budget", &budget.name),
                NotificationDetail::new("Limit", money.limit_per_hour),
                NotificationDetail::new("Nodes that stay", count),
            ],
            ..notification(NotificationKind::BudgetReached, &budget.name, &plan.cluster)
        })
    })
}

fn is_held_by_money(held: &HeldBack, budget: &BudgetState) -> bool {
    let by = held.budget.as_ref();
    by.is_some_and(|by| by.is_out_of_money && (by.kind, &by.name) == (budget.kind, &budget.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::model::HourlyPrice;
    use crate::core::plan::{BudgetKind, BudgetMoney, HoldingBudget, Note, ReasonCode};

    fn plan() -> Plan {
        serde_json::from_str(include_str!("../../../tests/plan/drifted-requirement/expected.json")).unwrap()
    }

    fn at(minutes: i64) -> Timestamp {
        "2026-11-20T09:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minutes)
    }

    fn outbox() -> Outbox {
        Outbox::new(&NotificationKind::ALL, "test", Masks::default())
    }

    fn posted(outbox: &mut Outbox, plan: &Plan, minutes: i64) {
        let (node_claims, unreadable_annotations) = (BTreeMap::new(), BTreeMap::new());
        let posted = Event::PlanPosted { plan: Box::new(plan.clone()), node_claims, unreadable_annotations };
        outbox.heard(&posted, at(minutes));
        let waits = Event::WaitsForApproval { plan_id: plan.id.clone(), moves: vec![1], rules: Vec::new() };
        outbox.heard(&waits, at(minutes));
    }

    fn tell(outbox: &mut Outbox, minutes: i64) -> Vec<String> {
        let mut told = Vec::new();
        while let Some(key) = outbox.due(at(minutes)).map(|it| it.key.clone()) {
            outbox.done(&key, at(minutes));
            told.push(key);
        }
        told
    }

    fn halts(text: &str) -> Plan {
        let note = Note::new(NoteCode::RolloutHalted, format!("NodePool default: {text}")).about_pool("default");
        Plan { notes: vec![note], ..plan() }
    }

    #[test]
    fn the_same_plan_is_told_once_whoever_posts_it() {
        let (mut first, plan) = (outbox(), plan());
        posted(&mut first, &plan, 0);
        let waits = first.due(at(0)).unwrap().clone();
        assert_eq!(waits.plan.as_deref(), Some(name_of(&plan.id)));
        assert!(waits.text.contains(&format!("cutlist approve {}", name_of(&plan.id))), "{}", waits.text);
        assert_eq!(tell(&mut first, 0).len(), 1);
        // Another process posts it under another name.
        let again = Plan { id: "f".repeat(64), generated_for: "2026-11-20T09:30:00Z".to_owned(), ..plan };
        let mut second = outbox();
        posted(&mut second, &again, 30);
        second.remember(first.told().clone());
        assert_eq!(tell(&mut second, 30), Vec::<String>::new());
        let mut third = outbox();
        third.remember(first.told().clone());
        posted(&mut third, &again, 30);
        assert_eq!(tell(&mut third, 30), Vec::<String>::new());
    }

    #[test]
    fn plans_that_follow_one_another_are_told_with_a_pause_and_only_the_newest() {
        let mut outbox = outbox();
        let of_revision = |id: &str| {
            let mut plan = Plan { id: id.repeat(64), ..plan() };
            plan.revision.id = id.repeat(40);
            plan
        };
        posted(&mut outbox, &of_revision("a"), 0);
        assert_eq!(tell(&mut outbox, 0).len(), 1);
        posted(&mut outbox, &of_revision("b"), 1);
        posted(&mut outbox, &of_revision("c"), 2);
        assert_eq!((tell(&mut outbox, 9).len(), outbox.next_due()), (0, Some(at(10))));
        let told = tell(&mut outbox, 10);
        assert!(told.len() == 1 && told[0].contains("/cccc"), "{told:?}");
        // One that is approved before it is told is not told.
        posted(&mut outbox, &of_revision("d"), 11);
        outbox.heard(&Event::Approved { plan_id: "d".repeat(64), by: None }, at(12));
        assert_eq!(tell(&mut outbox, 60), Vec::<String>::new());
    }

    #[test]
    fn a_halted_rollout_is_told_once_until_it_went_on() {
        let mut outbox = outbox();
        for (minutes, count) in [(0, 1), (1, 0), (300, 0)] {
            outbox.planned(&halts("3 nodes did not become ready"), at(minutes));
            assert_eq!(tell(&mut outbox, minutes).len(), count, "{minutes}");
        }
        outbox.planned(&halts("4 nodes did not become ready"), at(301));
        assert_eq!(tell(&mut outbox, 301).len(), 0, "the same halt");
        outbox.planned(&plan(), at(302));
        outbox.planned(&halts("3 nodes did not become ready"), at(303));
        assert_eq!(tell(&mut outbox, 303).len(), 0, "one look without it is no end");
        outbox.planned(&plan(), at(304));
        assert!(outbox.planned(&plan(), at(306)), "what was told is forgotten");
        outbox.planned(&halts("3 nodes did not become ready"), at(307));
        assert_eq!(tell(&mut outbox, 307), ["rollout-halted/default"]);
    }

    #[test]
    fn a_state_that_passed_before_it_was_told_is_not_told() {
        let mut outbox = outbox();
        assert!(outbox.planned(&halts("3 nodes did not become ready"), at(0)));
        outbox.planned(&plan(), at(1));
        assert_eq!(tell(&mut outbox, 1), Vec::<String>::new());
    }

    #[test]
    fn money_that_is_used_up_is_told_of_its_budget() {
        let price = |dollars: f64| -> HourlyPrice { serde_json::from_value(dollars.into()).unwrap() };
        let money = BudgetMoney { limit_per_hour: price(1.0), allowed_per_hour: price(0.1), used_per_hour: price(0.0) };
        let budget = BudgetState {
            name: "night".to_owned(),
            kind: BudgetKind::DisruptionBudget,
            nodes: "10%".to_owned(),
            reasons: Vec::new(),
            nodes_counted: 9,
            allowed: 1,
            used: 0,
            forced: 0,
            active: true,
            money: Some(money),
            denied_by: None,
            definition: None,
        };
        let text = "DisruptionBudget night has moneyPerHour $1.0000/h, of which $0.1000/h are left, and the node costs $0.2000/h";
        let held = |text: &str, is_out_of_money: bool| HeldBack {
            node: "a".to_owned(),
            code: ReasonCode::BudgetExhausted,
            text: text.to_owned(),
            kind: Vec::new(),
            budget: Some(HoldingBudget { kind: budget.kind, name: budget.name.clone(), is_out_of_money }),
            definition: None,
        };
        let mut outbox = outbox();
        let other = "DisruptionBudget night allows 0 of 9 nodes now (10%), 1 taken by this plan";
        outbox.planned(&Plan { budgets: vec![budget.clone()], held_back: vec![held(other, false)], ..plan() }, at(0));
        assert!(outbox.due(at(0)).is_none());
        let held_back = vec![held(text, true), held(text, true)];
        outbox.planned(&Plan { budgets: vec![budget], held_back, ..plan() }, at(1));
        let told = outbox.due(at(1)).unwrap();
        assert_eq!((told.key.as_str(), told.budget.as_deref()), ("budget-reached/night", Some("night")));
        assert!(told.text.starts_with("2 nodes stay that would go: DisruptionBudget night has"), "{}", told.text);
    }

    #[test]
    fn what_waits_and_what_was_told_have_limits() {
        let mut outbox = outbox();
        for number in 0..PENDING_MAX + 5 {
            let plan = Plan { id: format!("{number:064}").chars().rev().collect(), ..plan() };
            let (node_claims, unreadable_annotations) = (BTreeMap::new(), BTreeMap::new());
            let id = plan.id.clone();
            outbox.heard(&Event::PlanPosted { plan: Box::new(plan), node_claims, unreadable_annotations }, at(0));
            outbox.heard(&Event::PlanFulfilled { plan_id: id, fidelity: Fidelity::default() }, at(0));
        }
        assert_eq!((outbox.pending.len(), outbox.dropped()), (PENDING_MAX, 5));
        for number in 0..TOLD_MAX + 5 {
            outbox.done(&number.to_string(), at(i64::try_from(number).unwrap()));
        }
        assert_eq!(outbox.told().len(), TOLD_MAX);
    }

    #[test]
    fn only_what_was_asked_for_is_told() {
        let mut outbox = Outbox::new(&[NotificationKind::PlanWaits], "test", Masks::default());
        assert!(!outbox.planned(&halts("x"), at(0)));
        assert!(outbox.due(at(0)).is_none());
    }
}
