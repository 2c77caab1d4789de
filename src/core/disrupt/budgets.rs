//! The ledger of disruption budgets: how many nodes may be disrupted now, and what this plan has taken of it.
//! Behaviour: reference, section 4.6; `DisruptionBudget` is ours and adds pools together, with a time zone.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::model::HourlyPrice;
use crate::plan::{BudgetKind, BudgetMoney, BudgetState, DefinitionPlaces};
use cutlist_api::disruption_budget::{DisruptionBudget, DisruptionBudgetSpec, TimeWindow};
use cutlist_api::node_pool::{DisruptionReason, NodePool};

use super::obstacle::budget::{HeldBy, Spent, SpentBudget};
use super::refused::Refused;
use super::windows::{Firing, Written, firing};

/// Nodes of one pool, as budgets count them.
#[derive(Clone, Debug, Default)]
pub struct PoolNodes {
    /// Managed, initialized, not terminating.
    pub counted: usize,
    /// Of those: not ready, or on their way out for any reason.
    pub disrupting: usize,
    /// What those cost together that are being disrupted.
    pub price_disrupting: HourlyPrice,
    /// Those of them whose removal was asked for long ago, and when: they count for as long as somebody does not let them go.
    pub leaving: BTreeSet<(Timestamp, String)>,
}

/// One budget, evaluated for the moment planned for.
#[derive(Clone, Debug)]
struct Line {
    state: BudgetState,
    /// Among those of its NodePool.
    position: usize,
    pools: Vec<String>,
    reasons: Option<Vec<DisruptionReason>>,
    /// Nodes that this plan takes for reasons the budget does not speak of: they are on their way out all the same.
    /// Source: reference, section 4.6.
    taken_otherwise: usize,
    /// What those cost together.
    price_otherwise: HourlyPrice,
    /// Where there is no node to take it of.
    percentage: Option<usize>,
    held_by: Option<HeldBy>,
}

impl Line {
    /// What the two kinds of budget have in common.
    fn new(
        name: &str,
        kind: BudgetKind,
        nodes: &str,
        reasons: Option<Vec<DisruptionReason>>,
        window: Window,
        counted: &PoolNodes,
        pools: Vec<String>,
    ) -> Self {
        let limit = if window == Window::Unreadable { 0 } else { limit(nodes, counted.counted) };
        // An empty list names no reason, where no list stands for all.
        let is_active = window != Window::Closed && reasons.as_ref().is_none_or(|reasons| !reasons.is_empty());
        let allowed = if !is_active { counted.counted } else { limit.saturating_sub(counted.disrupting) };
        let state = BudgetState {
            name: name.to_owned(),
            kind,
            nodes: nodes.to_owned(),
            reasons: reasons.iter().flatten().map(|reason| format!("{reason:?}")).collect(),
            nodes_counted: counted.counted,
            allowed,
            used: 0,
            forced: 0,
            active: is_active,
            money: None,
            denied_by: None,
            definition: None,
        };
        let is_of_none = window == Window::Open && counted.counted == 0;
        let percentage = percentage(nodes).filter(|percentage| is_of_none && *percentage > 0);
        let price_otherwise = HourlyPrice::ZERO;
        // A budget of none would let none go without them as well.
        let held_by = HeldBy::of(&counted.leaving).filter(|_| is_active && limit > 0);
        Self { state, position: 0, pools, reasons, taken_otherwise: 0, price_otherwise, percentage, held_by }
    }

    fn applies(&self, pool: &str, reason: DisruptionReason) -> bool {
        self.covers(pool) && self.reasons.as_ref().is_none_or(|reasons| reasons.contains(&reason))
    }

    fn covers(&self, pool: &str) -> bool {
        self.state.active && self.pools.iter().any(|name| name == pool)
    }

    fn left(&self) -> usize {
        self.state.allowed.saturating_sub(self.taken())
    }

    /// Nodes that this plan takes, for whatever reason.
    fn taken(&self) -> usize {
        self.state.used + self.state.forced + self.taken_otherwise
    }

    /// What is left of `moneyPerHour`, less than nothing where nodes went that ask no budget; `None`: it has none.
    fn money_left(&self) -> Option<HourlyPrice> {
        self.state.money.map(|money| money.allowed_per_hour - money.used_per_hour - self.price_otherwise)
    }

    fn exceeds_money(&self, price: HourlyPrice) -> bool {
        self.money_left().is_some_and(|left| price > left)
    }

    /// Why it lets no node of this price go.
    fn spent(&self, price: HourlyPrice) -> SpentBudget {
        let state = &self.state;
        let money = state.money.filter(|_| self.left() > 0 && self.exceeds_money(price));
        let spent = match (&state.denied_by, money) {
            (Some(window), _) => Spent::ByWindow(window.clone()),
            (None, Some(money)) => Spent::Money {
                limit_per_hour: money.limit_per_hour,
                left: self.money_left().unwrap_or_default().max(HourlyPrice::ZERO),
                price,
            },
            (None, None) => Spent::Nodes {
                allowed: state.allowed,
                counted: state.nodes_counted,
                nodes: state.nodes.clone(),
                taken: self.taken(),
                held_by: self.held_by.clone(),
            },
        };
        SpentBudget { kind: state.kind, name: state.name.clone(), spent, definition: state.definition.clone() }
    }
}

/// What budgets leave of a pool for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// `None`: as many as there are.
    pub nodes: Option<usize>,
    /// The budget that allows the fewest.
    pub by: Option<String>,
    /// What they may cost together; `None`: no budget says.
    pub money: Option<HourlyPrice>,
    /// Where a budget allows none only because none is there to count: the smallest percentage.
    pub percentage: Option<usize>,
}

/// By pool and reason, how many nodes may be disrupted at a moment, with this many nodes there.
/// O(pools x budgets).
pub fn allowed_at(
    pools: &[NodePool],
    budgets: &[DisruptionBudget],
    nodes: &BTreeMap<String, PoolNodes>,
    moment: Timestamp,
) -> BTreeMap<String, BTreeMap<DisruptionReason, Allowance>> {
    let ledger = Ledger::new(pools, budgets, nodes, moment);
    let names = pools.iter().filter_map(|pool| pool.metadata.name.clone());
    names.map(|name| (name.clone(), ledger.allowances(&name))).collect()
}

/// All budgets. Two plans can not spend the same allowance: nodes on their way out are taken off before.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    lines: Vec<Line>,
}

impl Ledger {
    /// `nodes` by pool. A schedule that can not be read allows nothing, as for the reference; lint names it.
    pub fn new(
        pools: &[NodePool],
        budgets: &[DisruptionBudget],
        nodes: &BTreeMap<String, PoolNodes>,
        now: Timestamp,
    ) -> Self {
        Self::when(pools, budgets, nodes, &|written| firing(written, now))
    }

    /// As [`Ledger::new`], with another to say which schedules struck.
    pub fn when(
        pools: &[NodePool],
        budgets: &[DisruptionBudget],
        nodes: &BTreeMap<String, PoolNodes>,
        firings: &dyn Fn(Written<'_>) -> Firing,
    ) -> Self {
        let mut ledger = Self::default();
        for pool in pools {
            let name = pool.metadata.name.clone().unwrap_or_default();
            for (position, budget) in pool.spec.disruption.budgets.iter().enumerate() {
                let window = window(budget.schedule.as_deref().map(|it| (it, budget.duration.as_ref(), None)), firings);
                let counted = nodes.get(&name).cloned().unwrap_or_default();
                let pools = vec![name.clone()];
                let reasons = budget.reasons.clone();
                let line = Line::new(&name, BudgetKind::NodePool, &budget.nodes, reasons, window, &counted, pools);
                ledger.lines.push(Line { position, ..line });
            }
        }
        for budget in budgets {
            let name = budget.metadata.name.clone().unwrap_or_default();
            let spec = &budget.spec;
            let selected: Vec<String> = pools
                .iter()
                .filter(|pool| selects(budget, pool))
                .filter_map(|pool| pool.metadata.name.clone())
                .collect();
            let mut counted = PoolNodes::default();
            for pool in &selected {
                let Some(of_pool) = nodes.get(pool) else { continue };
                counted.counted += of_pool.counted;
                counted.disrupting += of_pool.disrupting;
                counted.price_disrupting += of_pool.price_disrupting;
                counted.leaving.extend(of_pool.leaving.iter().cloned());
            }
            let zone = spec.time_zone.as_deref();
            let window = window(spec.schedule.as_deref().map(|it| (it, spec.duration.as_ref(), zone)), firings);
            let (kind, reasons) = (BudgetKind::DisruptionBudget, spec.reasons.clone());
            let mut line = Line::new(&name, kind, &spec.nodes, reasons, window, &counted, selected);
            if line.state.active {
                line.state.money = money(spec.money_per_hour, counted.price_disrupting);
                line.state.denied_by = denied_by(spec, firings);
                if line.state.denied_by.is_some() {
                    line.state.allowed = 0;
                }
            }
            ledger.lines.push(line);
        }
        ledger
    }

    /// With the places of the definitions.
    #[must_use]
    pub fn placed(mut self, places: &DefinitionPlaces) -> Self {
        for line in &mut self.lines {
            let name = &line.state.name;
            line.state.definition = match line.state.kind {
                BudgetKind::NodePool => places.of_pool(name, &format!("/spec/disruption/budgets/{}", line.position)),
                BudgetKind::DisruptionBudget => places.of("DisruptionBudget", name, ""),
            };
        }
        self
    }

    /// Takes one node of a pool for a reason, or names the budget that does not allow it.
    pub fn take(&mut self, pool: &str, reason: DisruptionReason, price: HourlyPrice) -> Result<(), Refused> {
        self.check(pool, reason, price)?;
        for line in self.lines.iter_mut().filter(|line| line.covers(pool)) {
            if !line.applies(pool, reason) {
                line.taken_otherwise += 1;
                line.price_otherwise += price;
                continue;
            }
            line.state.used += 1;
            if let Some(money) = &mut line.state.money {
                money.used_per_hour += price;
            }
        }
        Ok(())
    }

    /// Counts a node that goes whatever budgets say: because it expired, is broken, or is more than a static pool wants. It is on its
    /// way out all the same. Source: reference, section 4.6.
    pub fn take_by_force(&mut self, pool: &str, price: HourlyPrice) {
        for line in self.lines.iter_mut().filter(|line| line.covers(pool)) {
            line.state.forced += 1;
            if let Some(money) = &mut line.state.money {
                money.used_per_hour += price;
            }
        }
    }

    /// Whether one more of this price could be taken, and if not by which budget.
    pub fn check(&self, pool: &str, reason: DisruptionReason, price: HourlyPrice) -> Result<(), Refused> {
        let mut applying = self.lines.iter().filter(|line| line.applies(pool, reason));
        match applying.find(|line| line.left() == 0 || line.exceeds_money(price)) {
            Some(line) => Err(Refused { definition: line.state.definition.clone(), ..line.spent(price).into() }),
            None => Ok(()),
        }
    }

    /// How many more nodes of a pool may be disrupted for a reason.
    pub fn allowance(&self, pool: &str, reason: DisruptionReason) -> Allowance {
        let applying = || self.lines.iter().filter(|line| line.applies(pool, reason));
        let of_none = |line: &Line| line.percentage.filter(|_| line.state.denied_by.is_none());
        // What allows none for another reason comes first, then the smallest percentage.
        let tightest = applying().min_by_key(|line| (line.left(), of_none(line)));
        tightest.map_or_else(Allowance::default, |line| Allowance {
            nodes: Some(line.left()),
            by: Some(line.state.name.clone()),
            money: applying().filter_map(Line::money_left).min(),
            percentage: of_none(line),
        })
    }

    /// The same for each reason.
    pub fn allowances(&self, pool: &str) -> BTreeMap<DisruptionReason, Allowance> {
        let reasons = [DisruptionReason::Underutilized, DisruptionReason::Empty, DisruptionReason::Drifted];
        BTreeMap::from(reasons.map(|reason| (reason, self.allowance(pool, reason))))
    }

    pub fn into_states(self) -> Vec<BudgetState> {
        self.lines.into_iter().map(|line| line.state).collect()
    }
}

/// More than any fleet costs, and what a price can still say: a budget of more than that is one of that.
const MONEY_DOLLARS_MAX: f64 = 8.9e9;

/// What `moneyPerHour` leaves when nodes of this price are on their way out. What is no amount allows nothing; lint names it.
fn money(limit: Option<f64>, disrupting: HourlyPrice) -> Option<BudgetMoney> {
    let limit = limit?;
    let limit = if limit > MONEY_DOLLARS_MAX { MONEY_DOLLARS_MAX } else { limit };
    let limit = HourlyPrice::from_dollars(limit).unwrap_or(HourlyPrice::ZERO);
    let allowed = (limit - disrupting).max(HourlyPrice::ZERO);
    Some(BudgetMoney { limit_per_hour: limit, allowed_per_hour: allowed, used_per_hour: HourlyPrice::ZERO })
}

/// The window that keeps a budget from allowing anything now. One that can not be read denies, and one that never fires is
/// never open.
fn denied_by(spec: &DisruptionBudgetSpec, firings: &dyn Fn(Written<'_>) -> Firing) -> Option<String> {
    let zone = spec.time_zone.as_deref();
    let state = |it: &TimeWindow| match firings((&it.schedule, Some(&it.duration), zone)) {
        Firing::Within => Window::Open,
        Firing::Later | Firing::Never => Window::Closed,
        Firing::Unreadable => Window::Unreadable,
    };
    let name = |it: &TimeWindow| format!("`{}` for {}, {}", it.schedule, it.duration, zone.unwrap_or("UTC"));
    let denying = spec.deny_windows.iter().find(|it| state(it) != Window::Closed);
    if let Some(window) = denying {
        return Some(format!("denyWindows has {}", name(window)));
    }
    let outside = !spec.allow_windows.is_empty() && !spec.allow_windows.iter().any(|it| state(it) == Window::Open);
    outside.then(|| match spec.allow_windows.as_slice() {
        [window] => format!("allowWindows has only {}", name(window)),
        windows => format!("none of its {} allowWindows is open", windows.len()),
    })
}

fn selects(budget: &DisruptionBudget, pool: &NodePool) -> bool {
    let Some(selector) = &budget.spec.node_pool_selector else { return true };
    let name = pool.metadata.name.as_deref().unwrap_or_default();
    let labels = pool.metadata.labels.as_ref();
    (selector.names.is_empty() || selector.names.iter().any(|selected| selected == name))
        && selector.match_labels.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
}

/// A count, or a percentage rounded up; what can not be read allows nothing.
pub(super) fn limit(nodes: &str, counted: usize) -> usize {
    match percentage(nodes) {
        Some(percentage) => (counted * percentage).div_ceil(100),
        None => nodes.parse().unwrap_or(0),
    }
}

fn percentage(nodes: &str) -> Option<usize> {
    let percentage: usize = nodes.strip_suffix('%')?.parse().ok()?;
    Some(percentage.min(100))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Window {
    Open,
    Closed,
    Unreadable,
}

/// Open when the schedule last hit no longer ago than the duration. No schedule: always. One that never hits, such as the 30th of
/// February: always as well, since the reference takes the zero time that its parser then answers for a hit in the past.
fn window(written: Option<Written<'_>>, firings: &dyn Fn(Written<'_>) -> Firing) -> Window {
    let Some(written) = written else { return Window::Open };
    match firings(written) {
        Firing::Within | Firing::Never => Window::Open,
        Firing::Later => Window::Closed,
        Firing::Unreadable => Window::Unreadable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::DefinitionPlace;
    use crate::testing::pool_with_budgets as pool;

    fn allowed(budgets: serde_json::Value, nodes: PoolNodes, now: &str) -> usize {
        let counted = BTreeMap::from([("a".to_owned(), nodes)]);
        let mut ledger = Ledger::new(&[pool(budgets)], &[], &counted, now.parse().unwrap());
        (0..1000).take_while(|_| ledger.take("a", DisruptionReason::Empty, HourlyPrice::ZERO).is_ok()).count()
    }

    fn nodes(counted: usize, disrupting: usize) -> PoolNodes {
        PoolNodes { counted, disrupting, ..PoolNodes::default() }
    }

    const NOON: &str = "2026-11-20T12:00:00Z";

    #[test]
    fn percentages_round_up_and_the_smallest_active_budget_counts() {
        assert_eq!(allowed(serde_json::json!([{ "nodes": "10%" }]), nodes(1, 0), NOON), 1);
        assert_eq!(allowed(serde_json::json!([{ "nodes": "10%" }]), nodes(11, 0), NOON), 2);
        assert_eq!(allowed(serde_json::json!([{ "nodes": "10%" }]), nodes(11, 2), NOON), 0);
        assert_eq!(allowed(serde_json::json!([{ "nodes": "50%" }, { "nodes": "3" }]), nodes(10, 0), NOON), 3);
        assert_eq!(allowed(serde_json::json!([]), nodes(10, 0), NOON), 1000, "an empty list does not restrict");
        assert_eq!(allowed(serde_json::json!([{ "nodes": "0", "reasons": ["Drifted"] }]), nodes(10, 0), NOON), 1000);
        assert_eq!(allowed(serde_json::json!([{ "nodes": "0", "reasons": [] }]), nodes(10, 0), NOON), 1000);
    }

    #[test]
    fn nodes_that_go_for_another_reason_are_on_their_way_out_all_the_same() {
        let counted = BTreeMap::from([("a".to_owned(), nodes(10, 0))]);
        let budgets = serde_json::json!([
            { "nodes": "5", "reasons": ["Empty"] },
            { "nodes": "2", "reasons": ["Underutilized"] },
        ]);
        let mut ledger = Ledger::new(&[pool(budgets)], &[], &counted, NOON.parse().unwrap());
        let mut take = |reason| ledger.take("a", reason, HourlyPrice::ZERO);
        assert!(take(DisruptionReason::Empty).is_ok() && take(DisruptionReason::Underutilized).is_ok());
        let refused = take(DisruptionReason::Underutilized).unwrap_err();
        assert_eq!(refused.to_string(), "NodePool a allows 2 of 10 nodes now (2), 2 taken by this plan");
        assert!((0..3).all(|_| take(DisruptionReason::Empty).is_ok()) && take(DisruptionReason::Empty).is_err());
        assert!(take(DisruptionReason::Drifted).is_ok(), "no budget speaks of it");
    }

    /// Whoever does not let a node go holds the budget, and is found by it.
    #[test]
    fn what_has_been_leaving_for_longest_is_named() {
        let refused = |budget: &str, leaving: &[(&str, &str)]| {
            let leaving = leaving.iter().map(|(since, node)| (since.parse().unwrap(), (*node).to_owned())).collect();
            let counted = PoolNodes { leaving, ..nodes(10, 3) };
            let counted = BTreeMap::from([("a".to_owned(), counted)]);
            let budgets = pool(serde_json::json!([{ "nodes": budget }]));
            let mut ledger = Ledger::new(&[budgets], &[], &counted, NOON.parse().unwrap());
            ledger.take("a", DisruptionReason::Empty, HourlyPrice::ZERO).unwrap_err().to_string()
        };
        let (late, early) = (("2026-11-20T11:59:00Z", "a"), ("2026-11-12T09:00:00Z", "b"));
        assert_eq!(
            refused("2", &[late, early]),
            "NodePool a allows 0 of 10 nodes now (2), 0 taken by this plan; b counts as well, on its way out since 2026-11-12T09:00:00Z, and 1 more"
        );
        assert_eq!(
            refused("2", &[late]),
            "NodePool a allows 0 of 10 nodes now (2), 0 taken by this plan; a counts as well, on its way out since 2026-11-20T11:59:00Z"
        );
        // Of nodes that are not ready no removal was asked for.
        assert_eq!(refused("2", &[]), "NodePool a allows 0 of 10 nodes now (2), 0 taken by this plan");
        assert_eq!(refused("0", &[early]), "NodePool a allows 0 of 10 nodes now (0), 0 taken by this plan");
    }

    #[test]
    fn nodes_that_ask_no_budget_count_all_the_same() {
        let counted = BTreeMap::from([("a".to_owned(), nodes(10, 0))]);
        let budgets = serde_json::json!([{ "nodes": "3" }, { "nodes": "2", "reasons": ["Drifted"] }]);
        let mut ledger = Ledger::new(&[pool(budgets)], &[], &counted, NOON.parse().unwrap());
        (0..2).for_each(|_| ledger.take_by_force("a", HourlyPrice::ZERO));
        let mut take = |reason| ledger.take("a", reason, HourlyPrice::ZERO);
        assert_eq!(
            take(DisruptionReason::Drifted).unwrap_err().to_string(),
            "NodePool a allows 2 of 10 nodes now (2), 2 taken by this plan"
        );
        assert!(take(DisruptionReason::Empty).is_ok() && take(DisruptionReason::Empty).is_err());
        let used: Vec<_> = ledger.into_states().iter().map(|state| (state.used, state.forced)).collect();
        assert_eq!(used, [(1, 2), (0, 2)]);
    }

    #[test]
    fn the_budget_that_refuses_says_where_it_is_defined() {
        let counted = BTreeMap::from([("a".to_owned(), nodes(10, 0))]);
        let budgets =
            serde_json::json!([{ "nodes": "3", "reasons": ["Empty"] }, { "nodes": "0", "reasons": ["Drifted"] }]);
        let at = |line| DefinitionPlace { file: "a.yaml".to_owned(), line };
        let lines = [("", 1), ("/spec/disruption/budgets/0", 7), ("/spec/disruption/budgets/1", 9)];
        let mut places = DefinitionPlaces::default();
        places.add("NodePool", "a", lines.into_iter().map(|(pointer, line)| (pointer.to_owned(), at(line))).collect());
        let ledger = Ledger::new(&[pool(budgets)], &[], &counted, NOON.parse().unwrap()).placed(&places);
        let refused = ledger.check("a", DisruptionReason::Drifted, HourlyPrice::ZERO).unwrap_err();
        assert_eq!(refused.definition, Some(at(9)));
        let states: Vec<_> = ledger.into_states().into_iter().map(|state| state.definition).collect();
        assert_eq!(states, [Some(at(7)), Some(at(9))]);
    }

    #[test]
    fn more_money_than_a_price_can_say_is_as_much_as_it_can() {
        assert_eq!(money(Some(1e30), HourlyPrice::ZERO), money(Some(MONEY_DOLLARS_MAX), HourlyPrice::ZERO));
        assert!(money(Some(1e30), HourlyPrice::ZERO).is_some_and(|money| money.allowed_per_hour > HourlyPrice::ZERO));
        assert!(
            money(Some(f64::NAN), HourlyPrice::ZERO).is_some_and(|money| money.allowed_per_hour == HourlyPrice::ZERO)
        );
    }

    #[test]
    fn money_of_nodes_that_ask_no_budget_is_spent_as_well() {
        let budget: DisruptionBudget = serde_json::from_value(serde_json::json!({
            "apiVersion": "cutlist.dev/v1alpha1", "kind": "DisruptionBudget", "metadata": { "name": "b" },
            "spec": { "nodes": "100%", "moneyPerHour": 1.0 },
        }))
        .unwrap();
        let counted = BTreeMap::from([("a".to_owned(), nodes(10, 0))]);
        let pools = [pool(serde_json::json!([]))];
        let mut ledger = Ledger::new(&pools, &[budget], &counted, NOON.parse().unwrap());
        let dollars = |dollars| HourlyPrice::from_dollars(dollars).unwrap();
        ledger.take_by_force("a", dollars(0.75));
        assert!(ledger.check("a", DisruptionReason::Empty, dollars(0.25)).is_ok());
        assert_eq!(
            ledger.check("a", DisruptionReason::Empty, dollars(0.3)).unwrap_err().to_string(),
            "DisruptionBudget b has moneyPerHour $1.0000/h, of which $0.2500/h are left, and the node costs $0.3000/h"
        );
    }

    #[test]
    fn windows_open_at_the_hit_and_close_after_the_duration() {
        let nightly = || serde_json::json!([{ "nodes": "0", "schedule": "0 9 * * *", "duration": "8h" }]);
        assert_eq!(allowed(nightly(), nodes(10, 0), "2026-11-20T09:00:00Z"), 0);
        assert_eq!(allowed(nightly(), nodes(10, 0), "2026-11-20T16:59:59Z"), 0);
        assert_eq!(allowed(nightly(), nodes(10, 0), "2026-11-20T17:00:00Z"), 1000);
        assert_eq!(allowed(nightly(), nodes(10, 0), "2026-11-20T08:59:59Z"), 1000);
        let wrong = serde_json::json!([{ "nodes": "5", "schedule": "whenever", "duration": "8h" }]);
        assert_eq!(allowed(wrong, nodes(10, 0), NOON), 0, "what can not be read allows nothing");
        let never = serde_json::json!([{ "nodes": "2", "schedule": "0 0 30 2 *", "duration": "8h" }]);
        assert_eq!(allowed(never, nodes(10, 0), NOON), 2, "what never hits is in force, as for the reference");
    }

    #[test]
    fn a_calendar_asks_for_every_hour() {
        let counted = BTreeMap::from([("a".to_owned(), nodes(10, 0))]);
        let pools = [pool(serde_json::json!([
            { "nodes": "0", "reasons": ["Drifted"], "schedule": "0 9 * * *", "duration": "2h" },
            { "nodes": "20%", "reasons": ["Underutilized"] },
        ]))];
        let allowed =
            |moment: &str, reason| allowed_at(&pools, &[], &counted, moment.parse().unwrap())["a"][&reason].nodes;
        assert_eq!(allowed("2026-11-20T08:00:00Z", DisruptionReason::Drifted), None);
        assert_eq!(allowed("2026-11-20T10:00:00Z", DisruptionReason::Drifted), Some(0));
        assert_eq!(allowed("2026-11-20T11:00:00Z", DisruptionReason::Drifted), None);
        assert_eq!(allowed("2026-11-20T10:00:00Z", DisruptionReason::Underutilized), Some(2));
        assert_eq!(allowed("2026-11-20T10:00:00Z", DisruptionReason::Empty), None);
    }

    /// Nine hours from nine o'clock in New York, on the days around the change of the clocks, and across the change itself.
    #[test]
    fn windows_follow_the_wall_clock_through_the_change_of_the_hour() {
        let counted = BTreeMap::from([("a".to_owned(), nodes(10, 0))]);
        let pools = [pool(serde_json::json!([]))];
        let open = |schedule: &str, duration: &str, now: &str| {
            let budget: DisruptionBudget = serde_json::from_value(serde_json::json!({
                "apiVersion": "cutlist.dev/v1alpha1", "kind": "DisruptionBudget", "metadata": { "name": "b" },
                "spec": { "nodes": "0", "schedule": schedule, "duration": duration, "timeZone": "America/New_York" },
            }))
            .unwrap();
            allowed_at(&pools, &[budget], &counted, now.parse().unwrap())["a"][&DisruptionReason::Empty].nodes
                == Some(0)
        };
        assert!(!open("0 9 * * *", "9h", "2026-03-07T13:59:00Z") && open("0 9 * * *", "9h", "2026-03-07T14:00:00Z"));
        assert!(!open("0 9 * * *", "9h", "2026-03-08T12:59:00Z") && open("0 9 * * *", "9h", "2026-03-08T13:00:00Z"));
        assert!(!open("0 9 * * *", "9h", "2026-11-01T13:59:00Z") && open("0 9 * * *", "9h", "2026-11-01T14:00:00Z"));
        // One o'clock comes twice; the window that it opens lasts two hours of real time from the first.
        assert!(open("0 1 * * *", "2h", "2026-11-01T05:30:00Z") && open("0 1 * * *", "2h", "2026-11-01T06:30:00Z"));
    }

    #[test]
    fn cluster_wide_budgets_add_pools_and_have_a_time_zone() {
        let budget: DisruptionBudget = serde_json::from_value(serde_json::json!({
            "apiVersion": "cutlist.dev/v1alpha1", "kind": "DisruptionBudget", "metadata": { "name": "office-hours" },
            "spec": { "nodes": "1", "schedule": "0 9 * * 1-5", "duration": "9h", "timeZone": "Asia/Seoul" },
        }))
        .unwrap();
        let counted = BTreeMap::from([("a".to_owned(), nodes(10, 0))]);
        let pools = [pool(serde_json::json!([]))];
        let taken = |now: &str| {
            let mut ledger = Ledger::new(&pools, std::slice::from_ref(&budget), &counted, now.parse().unwrap());
            (0..5).take_while(|_| ledger.take("a", DisruptionReason::Underutilized, HourlyPrice::ZERO).is_ok()).count()
        };
        assert_eq!(taken("2026-11-20T00:00:00Z"), 1, "nine o'clock on a Friday in Seoul");
        assert_eq!(taken("2026-11-20T09:00:00Z"), 5, "six in the evening there");
        assert_eq!(taken("2026-11-21T03:00:00Z"), 5, "a Saturday");
    }
}
