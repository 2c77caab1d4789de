//! Whether a move is allowed, and worth it.

use std::collections::{BTreeMap, BTreeSet};

use crate::disrupt::candidate::Candidate;
use crate::disrupt::cost;
use crate::disrupt::pass::Pass;
use crate::disrupt::rehome::{self, Rehoming};
use crate::disrupt::removal_cause::RemovalCause;
use crate::model::HourlyPrice;
use crate::plan::Balance;
use crate::provision::Purchase;
use crate::provision::purchase::too_few;
use crate::scheduler::{Engine, HostIndex};
use crate::snapshot::PodIndex;
use cutlist_api::keys;
use cutlist_api::node_pool::DisruptionReason;
use cutlist_api::settings::Packing;

use super::obstacle::{NotSaved, SPOT_TO_SPOT_TYPES};
use super::saving::Saving;
use super::totals::{Likeness, PoolTotals};
use super::trial::Trial;
use super::{Refused, Source};

/// How many times the pods of a move count that packs them anew, with those of other nodes: numerator, denominator. One node that is
/// replaced by a better one for the same pods saves as long as they run, a better packing only until pods come and go. By default a
/// move may so, as under `Balanced`, disrupt about twice the part that it saves.
const PACKED_ANEW: (i64, i64) = (5, 2);

/// Why a trial is not kept.
#[derive(Debug)]
pub(super) enum NotKept {
    /// It would buy nodes like these, which it does without.
    LikeThese(Vec<HostIndex>),
    Refused(Refused),
}

impl NotKept {
    /// Why nodes stay that nothing else is tried for.
    pub(super) fn into_refused(self) -> Refused {
        match self {
            Self::Refused(refused) => refused,
            Self::LikeThese(_) => NotSaved::NothingIsSaved.into(),
        }
    }
}

impl From<NotSaved> for NotKept {
    fn from(not_saved: NotSaved) -> Self {
        Self::Refused(not_saved.into())
    }
}

impl From<Refused> for NotKept {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl Pass<'_, '_> {
    /// Keeps a trial that is allowed and worth it; of any other the engine knows nothing afterwards.
    pub(super) fn keep(
        &mut self,
        engine: &mut Engine<'_, '_>,
        sources: &[Source<'_>],
        trial: &Trial,
    ) -> Result<(), NotKept> {
        let going: Vec<&Candidate> = sources.iter().map(|source| source.candidate).collect();
        match self.examined(engine, sources, &going, trial) {
            Ok((cause, rehoming, balances)) => {
                for candidate in &going {
                    // Checked for all of them together; nothing was taken since.
                    let _ = self.disruption.budgets.take(
                        &candidate.pool,
                        DisruptionReason::Underutilized,
                        candidate.price_counted(),
                    );
                }
                self.created.extend(rehoming.purchases.iter().map(likeness_of_purchase));
                self.replaced.extend(going.iter().map(|candidate| likeness(engine, candidate.host)));
                self.remove(engine, &going, cause, rehoming);
                if let Some(removal) = self.disruption.removals.last_mut() {
                    removal.balances = balances;
                }
                Ok(())
            }
            Err(not_kept) => {
                engine.revert(trial.mark);
                Err(not_kept)
            }
        }
    }

    fn examined(
        &self,
        engine: &Engine<'_, '_>,
        sources: &[Source<'_>],
        going: &[&Candidate],
        trial: &Trial,
    ) -> Result<(RemovalCause, Rehoming, Vec<Balance>), NotKept> {
        self.refuse_spot_to_spot(engine, going, trial)?;
        // Most trials end here, before anything is worked out that only those need which are kept.
        self.check_payback(going, trial, HourlyPrice::ZERO, 0)?;
        let mut rehoming = rehome::outcome(engine, going, trial.mark);
        let crossing = zone_crossings(engine, &rehoming, going);
        if crossing > 0 {
            self.check_payback(going, trial, HourlyPrice::ZERO, crossing)?;
        }
        self.check_likeness(engine, going, &rehoming.purchases)?;
        let bought = rehoming.purchases.len();
        for purchase in &mut rehoming.purchases {
            let dearest = dearest_by_type(purchase);
            let shown = purchase.price;
            self.keep_worthwhile(engine, purchase, going, trial, (bought, crossing));
            if self.inputs.policy.packing == Packing::Karpenter {
                let is_worthwhile = |price: HourlyPrice| {
                    self.check_payback(going, trial, (price - shown).times(bought), crossing).is_ok()
                };
                purchase.keep(engine, |it| dearest.get(&it.instance_type).is_some_and(|price| is_worthwhile(*price)));
                if purchase.alternatives.is_empty() {
                    return Err(NotSaved::NothingIsSaved.into());
                }
            }
            self.keep_flexible(engine, going, purchase)?;
        }
        let balances = self.balances(sources, trial);
        if let Some(balance) = balances.iter().find(|balance| !balance.is_enough()) {
            return Err(NotSaved::NotBalanced(balance.clone()).into());
        }
        let cause = RemovalCause::Underutilized(saving(going, trial, &balances));
        self.check_budgets(going).map_err(|refused| refused.although(&cause))?;
        Ok((cause, rehoming, balances))
    }

    /// Whether the budgets of all pools allow the nodes together.
    fn check_budgets(&self, going: &[&Candidate]) -> Result<(), Refused> {
        let mut ledger = self.disruption.budgets.clone();
        let mut take = |candidate: &&Candidate| {
            ledger.take(&candidate.pool, DisruptionReason::Underutilized, candidate.price_counted())
        };
        going.iter().try_for_each(&mut take)
    }

    /// What the launch may fall back to must be worth the move as well, also where every new node falls back as far.
    fn keep_worthwhile(
        &self,
        engine: &Engine<'_, '_>,
        purchase: &mut Purchase,
        going: &[&Candidate],
        trial: &Trial,
        (bought, crossing): (usize, usize),
    ) {
        let shown = purchase.price;
        let gone: BTreeSet<Likeness> = going.iter().map(|candidate| likeness(engine, candidate.host)).collect();
        purchase.alternatives.retain(|alternative| {
            let dearer = (alternative.price_per_hour - shown).times(bought);
            let like = (alternative.instance_type.clone(), alternative.zone.clone(), alternative.capacity_type.clone());
            self.check_payback(going, trial, dearer, crossing).is_ok() && !gone.contains(&like)
        });
    }

    /// What is left must be as varied as the pool asks for. Under `packing: karpenter` a spot node is replaced by another only
    /// with 15 types to choose from, and by the cheapest 15, so that nodes do not go down one type at a time.
    fn keep_flexible(
        &self,
        engine: &Engine<'_, '_>,
        going: &[&Candidate],
        purchase: &mut Purchase,
    ) -> Result<(), Refused> {
        let alone_on_spot = going.len() == 1 && all_spot(engine, going);
        let is_reference = self.inputs.policy.packing == Packing::Karpenter;
        if is_reference && alone_on_spot && purchase.capacity_type == keys::SPOT {
            let mut types: Vec<String> = Vec::new();
            for alternative in &purchase.alternatives {
                if !types.contains(&alternative.instance_type) {
                    types.push(alternative.instance_type.clone());
                }
            }
            if types.len() < SPOT_TO_SPOT_TYPES {
                return Err(NotSaved::FewSpotTypes { types: types.len() }.into());
            }
            types.truncate(SPOT_TO_SPOT_TYPES);
            purchase.alternatives.retain(|alternative| types.contains(&alternative.instance_type));
        }
        let too_few = too_few(&engine.problem.templates[purchase.template], &purchase.alternatives).into_iter().next();
        too_few.map_or(Ok(()), |lowered| Err(NotSaved::MinValues(lowered).into()))
    }

    /// Where the gate is off, as it is by default in the reference.
    fn refuse_spot_to_spot(&self, engine: &Engine<'_, '_>, going: &[&Candidate], trial: &Trial) -> Result<(), Refused> {
        let opens_spot = engine.open_hosts_since(trial.mark).filter_map(|host| engine.open_node(host)).any(|open| {
            let template = &engine.problem.templates[open.template];
            template.offerings.values_of(&open.set, keys::CAPACITY_TYPE).contains(&keys::SPOT)
        });
        let policy = &self.inputs.policy;
        let gate = policy.feature_gates.spot_to_spot_consolidation;
        if !gate.unwrap_or(policy.packing == Packing::Cheapest) && opens_spot && all_spot(engine, going) {
            return Err(NotSaved::SpotToSpotIsOff.into());
        }
        Ok(())
    }

    /// A move must repay its disruption in time. Under `packing: karpenter` any saving will do, as for the reference.
    /// `dearer` is what the new nodes cost more than the trial says; `crossing` how many pods come to another zone.
    pub(super) fn check_payback(
        &self,
        going: &[&Candidate],
        trial: &Trial,
        dearer: HourlyPrice,
        crossing: usize,
    ) -> Result<(), Refused> {
        let bought = trial.bought + dearer;
        let without_concentration = trial.before - bought + trial.saved_beside;
        let saving = without_concentration - trial.concentration;
        if saving <= HourlyPrice::ZERO && without_concentration > HourlyPrice::ZERO {
            let counts = trial.concentration;
            return Err(NotSaved::Concentration { saving: without_concentration, counts }.into());
        }
        if saving <= HourlyPrice::ZERO {
            return Err(NotSaved::NothingIsSaved.into());
        }
        let Some(limit) = self.payback_seconds(going) else { return Ok(()) };
        let pods = moved_nanodollars(going, trial.nodes_bought);
        let cost = self.costs.of_move(bought, pods, crossing);
        let seconds = cost::payback_seconds(saving, cost).unwrap_or(i64::MAX);
        if seconds <= limit {
            return Ok(());
        }
        Err(NotSaved::Payback { saving, is_bound: false, seconds, limit_seconds: limit }.into())
    }

    /// The shortest time in which a move of these nodes must repay itself; `None` where any saving will do.
    pub(super) fn payback_seconds(&self, going: &[&Candidate]) -> Option<i64> {
        if self.inputs.policy.packing == Packing::Karpenter {
            return None;
        }
        going.iter().filter_map(|candidate| candidate.payback_seconds).min()
    }

    /// A plan that buys a node like one that it does without moves pods for nothing.
    fn check_likeness(
        &self,
        engine: &Engine<'_, '_>,
        going: &[&Candidate],
        purchases: &[Purchase],
    ) -> Result<(), NotKept> {
        if self.inputs.policy.packing == Packing::Karpenter {
            return Ok(());
        }
        let mut bought: BTreeMap<Likeness, usize> = BTreeMap::new();
        for purchase in purchases {
            *bought.entry(likeness_of_purchase(purchase)).or_default() += 1;
        }
        let mut like_these = Vec::new();
        for candidate in going {
            let like = likeness(engine, candidate.host);
            if self.created.contains(&like) {
                return Err(NotSaved::LikeOneCreated.into());
            }
            if let Some(left) = bought.get_mut(&like).filter(|left| **left > 0) {
                *left -= 1;
                like_these.push(candidate.host);
            }
        }
        if !like_these.is_empty() {
            return Err(NotKept::LikeThese(like_these));
        }
        if bought.keys().any(|like| self.replaced.contains(like)) {
            return Err(NotSaved::LikeOneRemoved.into());
        }
        Ok(())
    }

    /// For each pool with `Balanced`, the part of its price that is saved and the part of its disruption cost that this takes.
    fn balances(&self, sources: &[Source<'_>], trial: &Trial) -> Vec<Balance> {
        let mut of_pools: BTreeMap<&str, PoolTotals> = BTreeMap::new();
        for source in sources.iter().filter(|source| source.candidate.is_balanced()) {
            let of_pool = of_pools.entry(&source.candidate.pool).or_default();
            of_pool.price += source.price;
            of_pool.disruption_cost += source.candidate.disruption_cost;
        }
        let saving = (trial.before - trial.bought).dollars() / trial.before.dollars().max(f64::MIN_POSITIVE);
        let of_pool = |(pool, moved): (&str, PoolTotals)| {
            let all = self.pool_totals.get(pool).copied().unwrap_or_default();
            let saved = saving * moved.price.dollars() / all.price.dollars().max(f64::MIN_POSITIVE);
            let disrupted = moved.disruption_cost / all.disruption_cost.max(f64::MIN_POSITIVE);
            Balance {
                move_number: 0,
                node_pool: pool.to_owned(),
                savings_percent: 100.0 * saved,
                disruption_percent: 100.0 * disrupted,
            }
        };
        of_pools.into_iter().map(of_pool).collect()
    }
}

/// What moving the pods of these nodes counts where so many nodes are bought for them.
pub(super) fn moved_nanodollars(going: &[&Candidate], nodes_bought: usize) -> i64 {
    let pods = going.iter().map(|candidate| candidate.move_nanodollars).fold(0, i64::saturating_add);
    let (times, of) = PACKED_ANEW;
    if going.len() == 1 && nodes_bought == 1 { pods } else { pods.saturating_mul(times) / of }
}

/// What a node of each type costs at most: in any zone, as spot where the type is sold as spot. Source: `WorstLaunchPrice` of the
/// reference, which replaces nodes by types alone that are cheaper even then.
fn dearest_by_type(purchase: &Purchase) -> BTreeMap<String, HourlyPrice> {
    let rank = |name: &str| [keys::RESERVED, keys::SPOT].iter().position(|it| *it == name).unwrap_or(usize::MAX);
    let mut dearest: BTreeMap<&str, (usize, HourlyPrice)> = BTreeMap::new();
    for alternative in &purchase.alternatives {
        let (rank, price) = (rank(&alternative.capacity_type), alternative.price_per_hour);
        let known = dearest.entry(&alternative.instance_type).or_insert((rank, price));
        if rank < known.0 || rank == known.0 && price > known.1 {
            *known = (rank, price);
        }
    }
    dearest.into_iter().map(|(name, (_, price))| (name.to_owned(), price)).collect()
}

fn all_spot(engine: &Engine<'_, '_>, going: &[&Candidate]) -> bool {
    let is_spot = |host: HostIndex| engine.problem.machines[host].label(keys::CAPACITY_TYPE) == Some(keys::SPOT);
    going.iter().all(|candidate| is_spot(candidate.host))
}

fn likeness(engine: &Engine<'_, '_>, host: HostIndex) -> Likeness {
    let label = |key| engine.problem.machines[host].label(key).unwrap_or_default().to_owned();
    (label(keys::INSTANCE_TYPE), label(keys::ZONE), label(keys::CAPACITY_TYPE))
}

fn likeness_of_purchase(purchase: &Purchase) -> Likeness {
    (purchase.instance_type.clone(), purchase.zone.clone(), purchase.capacity_type.clone())
}

/// Pods that come to another zone than they were in.
fn zone_crossings(engine: &Engine<'_, '_>, rehoming: &Rehoming, going: &[&Candidate]) -> usize {
    let zone_of = |host: HostIndex| engine.problem.machines[host].label(keys::ZONE).unwrap_or_default();
    let mut from: BTreeMap<PodIndex, &str> = BTreeMap::new();
    for candidate in going {
        from.extend(candidate.pods.iter().map(|pod| (*pod, zone_of(candidate.host))));
    }
    let to_existing = rehoming.placements.iter().map(|(pod, host)| (pod, zone_of(*host)));
    let to_new = rehoming.purchases.iter().flat_map(|it| it.pods.iter().map(|pod| (pod, it.zone.as_str())));
    to_existing.chain(to_new).filter(|(pod, zone)| from.get(pod).is_some_and(|from| from != zone)).count()
}

fn saving(going: &[&Candidate], trial: &Trial, balances: &[Balance]) -> Saving {
    Saving {
        nodes: going.len(),
        pods: going.iter().map(|candidate| candidate.displaced().count()).sum(),
        nodes_bought: trial.nodes_bought,
        before: trial.before,
        bought: trial.bought,
        saved_beside: trial.saved_beside,
        balances: balances.to_vec(),
    }
}
