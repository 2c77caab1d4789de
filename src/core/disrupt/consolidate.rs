//! Consolidation: nodes whose pods fit elsewhere for less money.
//! Behaviour: reference, section 4.4; on top of it, a move must repay what it costs.

use crate::api::keys;
use crate::api::node_pool::DisruptionReason;
use crate::api::settings::Packing;
use crate::core::model::HourlyPrice;
use crate::core::plan::{Reason, ReasonCode};
use crate::core::provision::Purchase;
use crate::core::provision::purchase::{Lowered, too_few};
use crate::core::scheduler::Engine;

use super::candidate::Candidate;
use super::{Pass, cost, duration_text, pods_text, rehome};

/// Source: the reference's `MinInstanceTypesForSpotToSpotConsolidation`.
const SPOT_TO_SPOT_TYPES: usize = 15;

/// Why a node stays.
type Refused = (ReasonCode, String);

impl Pass<'_, '_> {
    /// Looks at every candidate that is left, most saving for its disruption first.
    pub(super) fn consolidate(&mut self, engine: &mut Engine<'_, '_>, candidates: &[Candidate]) {
        let mut open = self.open(candidates);
        let ratio = |candidate: &Candidate| candidate.price.unwrap_or_default().dollars() / candidate.disruption_cost;
        open.sort_by(|one, two| ratio(two).total_cmp(&ratio(one)).then_with(|| one.name.cmp(&two.name)));
        for candidate in open {
            if let Err((code, text)) = self.consolidate_one(engine, candidate) {
                self.hold_back(engine, candidate.host, code, text);
            }
        }
    }

    fn consolidate_one(&mut self, engine: &mut Engine<'_, '_>, candidate: &Candidate) -> Result<(), Refused> {
        candidate.consolidatable_at(self.inputs.now)?;
        candidate.may_be_consolidated()?;
        if self.targets[candidate.host].receives {
            return Err((ReasonCode::NominatedForPods, "pods of another node get their place here".to_owned()));
        }
        let Some(price) = candidate.price else {
            return Err((
                ReasonCode::UnknownInstanceType,
                "the catalog has no price for its instance type, zone and capacity type".to_owned(),
            ));
        };
        let mark = engine.mark();
        let found = self.find_move(engine, candidate, price).and_then(|reason| {
            let mut rehoming = rehome::outcome(engine, candidate, mark);
            for purchase in &mut rehoming.purchases {
                self.keep_worthwhile(purchase, price, candidate.pods.len());
                self.keep_flexible(engine, candidate, purchase)?;
            }
            let budget = self.disruption.budgets.take(&candidate.pool, DisruptionReason::Underutilized);
            budget.map_err(|text| (ReasonCode::BudgetExhausted, format!("{}, but {text}", reason.text)))?;
            Ok((reason, rehoming))
        });
        match found {
            Ok((reason, rehoming)) => {
                self.remove(engine, candidate, reason, rehoming);
                Ok(())
            }
            Err(refused) => {
                engine.revert(mark);
                Err(refused)
            }
        }
    }

    /// Moves the pods in the engine; the reason when that is worth it.
    fn find_move(
        &self,
        engine: &mut Engine<'_, '_>,
        candidate: &Candidate,
        price: HourlyPrice,
    ) -> Result<Reason, Refused> {
        let targets = &self.targets;
        let left =
            rehome::move_to_existing(engine, candidate, &|host| targets[host].is_open() && !targets[host].restless);
        let (pods, all) = (candidate.pods.len(), candidate.displaced().count());
        let replacement = if left.is_empty() {
            HourlyPrice::ZERO
        } else {
            let count: usize = left.values().sum();
            rehome::one_cheaper_node(engine, &left, candidate.weight, price).ok_or_else(|| {
                (
                    ReasonCode::NotCheaper,
                    format!("{count} of its {} fit neither on other nodes nor on one cheaper node", pods_text(all)),
                )
            })?
        };
        self.refuse_spot_to_spot(engine, candidate)?;
        let saving = price - replacement;
        self.check_payback(saving, replacement, pods)?;
        let text = if left.is_empty() {
            format!("Underutilized: its {} on other nodes, saves {saving}", fit_text(all))
        } else {
            format!("Underutilized: a node for {replacement} is enough, saves {saving}")
        };
        Ok(Reason { code: ReasonCode::Underutilized, text })
    }

    /// What the launch may fall back to must be worth the move as well.
    fn keep_worthwhile(&self, purchase: &mut Purchase, price: HourlyPrice, pods: usize) {
        purchase.alternatives.retain(|alternative| {
            let replacement = alternative.price_per_hour;
            replacement < price && self.check_payback(price - replacement, replacement, pods).is_ok()
        });
    }

    /// What is left must be as varied as the pool asks for. Under `packing: karpenter` a spot node is replaced by another only
    /// with 15 types to choose from, and by the cheapest 15, so that nodes do not go down one type at a time.
    fn keep_flexible(
        &self,
        engine: &Engine<'_, '_>,
        candidate: &Candidate,
        purchase: &mut Purchase,
    ) -> Result<(), Refused> {
        let was_spot = engine.problem.machines[candidate.host].label(keys::CAPACITY_TYPE) == Some(keys::SPOT);
        let is_reference = self.inputs.policy.packing == Packing::Karpenter;
        if is_reference && was_spot && purchase.capacity_type == keys::SPOT {
            let mut types: Vec<String> = Vec::new();
            for alternative in &purchase.alternatives {
                if !types.contains(&alternative.instance_type) {
                    types.push(alternative.instance_type.clone());
                }
            }
            if types.len() < SPOT_TO_SPOT_TYPES {
                let text = format!("spot by spot: {} cheaper types, {SPOT_TO_SPOT_TYPES} are needed", types.len());
                return Err((ReasonCode::NotCheaper, text));
            }
            types.truncate(SPOT_TO_SPOT_TYPES);
            purchase.alternatives.retain(|alternative| types.contains(&alternative.instance_type));
        }
        match too_few(&engine.problem.templates[purchase.template], &purchase.alternatives).first() {
            None => Ok(()),
            Some(Lowered { key, asked, there }) => {
                let text = format!("cheaper types have {there} values of {key}, minValues asks for {asked}");
                Err((ReasonCode::NotCheaper, text))
            }
        }
    }

    /// Where the gate is off, as it is by default in the reference.
    fn refuse_spot_to_spot(&self, engine: &Engine<'_, '_>, candidate: &Candidate) -> Result<(), Refused> {
        let is_spot = engine.problem.machines[candidate.host].label(keys::CAPACITY_TYPE) == Some(keys::SPOT);
        let opens_spot = engine.open_hosts().filter_map(|host| engine.open_node(host)).any(|open| {
            let template = &engine.problem.templates[open.template];
            template.offerings.values_of(&open.set, keys::CAPACITY_TYPE).contains(&keys::SPOT)
        });
        let policy = &self.inputs.policy;
        let gate = policy.feature_gates.spot_to_spot_consolidation;
        if !gate.unwrap_or(policy.packing == Packing::Cheapest) && is_spot && opens_spot {
            return Err((
                ReasonCode::NotSupported,
                "spot is not replaced by spot: spec.featureGates.SpotToSpotConsolidation is off".to_owned(),
            ));
        }
        Ok(())
    }

    /// A move must repay its disruption in time. Under `packing: karpenter` any saving will do, as for the reference.
    fn check_payback(&self, saving: HourlyPrice, replacement: HourlyPrice, pods: usize) -> Result<(), Refused> {
        let policy = &self.inputs.policy;
        let Some(limit) = policy.disruption.payback.seconds().filter(|_| policy.packing == Packing::Cheapest) else {
            return Ok(());
        };
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        match cost::payback_seconds(saving, cost::of_move_nanodollars(replacement, pods)) {
            Some(seconds) if seconds <= limit => Ok(()),
            Some(seconds) => {
                let text = format!(
                    "would save {saving}, but repays the disruption only after {} (payback {})",
                    duration_text(seconds),
                    policy.disruption.payback
                );
                Err((ReasonCode::PaybackTooLong, text))
            }
            None => Err((ReasonCode::NotCheaper, "nothing would be saved".to_owned())),
        }
    }
}

/// `pod fits`, `5 pods fit`
fn fit_text(pods: usize) -> String {
    if pods == 1 { "pod fits".to_owned() } else { format!("{pods} pods fit") }
}
