//! Amounts as people read them.

use std::collections::BTreeSet;

use crate::core::model::resources::{CPU, MEMORY};
use crate::core::model::{HourlyPrice, Resources};
use crate::core::plan::{FewerNodes, HeldBack, NodeCounts, ReasonCode, Summary};

pub use crate::core::model::money::thousands;

/// `cpu 5.15 of 7.91  memory 0.3 of 14.2 GiB`: what is requested of what a node offers. Empty when neither is known.
pub fn use_of(requested: &Resources, allocatable: &Resources) -> String {
    let mut parts = Vec::new();
    if allocatable.get(CPU) > 0 {
        parts.push(format!("cpu {} of {}", cores(requested.get(CPU)), cores(allocatable.get(CPU))));
    }
    if allocatable.get(MEMORY) > 0 {
        parts.push(format!(
            "memory {} of {} GiB",
            gibibytes(requested.get(MEMORY)),
            gibibytes(allocatable.get(MEMORY))
        ));
    }
    parts.join("  ")
}

/// `cpu 5.15`, `memory 0.3 GiB`: each amount with its unit, without those that are not above zero.
pub fn amounts_of(resources: &Resources) -> Vec<String> {
    let (cpu, memory) = (resources.get(CPU), resources.get(MEMORY));
    let cpu = (cpu > 0).then(|| format!("cpu {}", cores(cpu)));
    let memory = (memory > 0).then(|| format!("memory {} GiB", gibibytes(memory)));
    cpu.into_iter().chain(memory).collect()
}

/// Cores with at most two decimals.
fn cores(milli: i64) -> String {
    let hundredths = (i128::from(milli) + 5).div_euclid(10);
    let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// GiB with one decimal.
fn gibibytes(bytes: i64) -> String {
    let tenths = ((i128::from(bytes) * 10) + (1 << 29)).div_euclid(1 << 30);
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// `+$0.3276/h`; the sign is always there.
pub fn signed_per_hour(price: HourlyPrice) -> String {
    if price < HourlyPrice::ZERO { price.to_string() } else { format!("+{price}") }
}

/// `+$0.3276/h`: what one thing costs more than another, or `same price`.
pub fn difference_per_hour(price: HourlyPrice) -> String {
    if price == HourlyPrice::ZERO { "same price".to_owned() } else { signed_per_hour(price) }
}

/// `+$239.15/month`, for a month of 730 hours.
pub fn signed_per_month(price: HourlyPrice) -> String {
    let sign = if price < HourlyPrice::ZERO { '-' } else { '+' };
    let text = format!("{:.2}", price.dollars_per_month().abs());
    let (whole, cents) = text.split_once('.').unwrap_or((&text, "00"));
    format!("{sign}${}.{cents}/month", thousands(whole))
}

/// `+$0.3276/h (+$239.15/month)`
pub fn money(change: HourlyPrice) -> String {
    format!("{} ({})", signed_per_hour(change), signed_per_month(change))
}

/// `+$0.3276/h (+$239.15/month)`: what one plan costs more than another, or `same price`.
pub fn difference(price: HourlyPrice) -> String {
    if price == HourlyPrice::ZERO { "same price".to_owned() } else { money(price) }
}

pub fn change(summary: &Summary) -> HourlyPrice {
    summary.price_per_hour_after - summary.price_per_hour_before
}

/// `3 replacements and 1 creation`, and how many these are; `None` where there are none. As elsewhere, a replacement of two nodes by one is
/// two.
pub fn kinds(nodes: &NodeCounts) -> Option<(String, usize)> {
    let kinds = [
        (nodes.removed, "removal"),
        (nodes.replaced, "replacement"),
        (nodes.created, "creation"),
        (nodes.adopted, "adoption"),
        (nodes.held, "held removal"),
    ];
    let named: Vec<String> =
        kinds.iter().filter(|(number, _)| *number > 0).map(|(number, noun)| count(*number, noun)).collect();
    let (last, others) = named.split_last()?;
    let list = if others.is_empty() { last.clone() } else { format!("{} and {last}", others.join(", ")) };
    Some((list, kinds.iter().map(|(number, _)| number).sum()))
}

/// A larger distance says more about the bound than about the plan: with few nodes, whole ones cost more than the parts
/// of nodes that the bound counts. The JSON form has the bound all the same.
const PER_MILLE_WORTH_SAYING: i128 = 200;

/// `within 1.2 % of the cheapest possible while 499 nodes stay`: the bound takes nodes that may go later as they are.
pub fn distance_of(summary: &Summary, held_back: &[HeldBack]) -> Option<String> {
    let distance = distance_from_cheapest(summary)?;
    let later: BTreeSet<&str> = held_back.iter().filter(|held| may_go_later(held)).map(|it| &*it.node).collect();
    Some(match later.len() {
        0 => distance,
        1 => format!("{distance} while 1 node stays"),
        nodes => format!("{distance} while {} stay", count(nodes, "node")),
    })
}

/// Whether what keeps the node passes by itself, or is lifted by somebody. A cheaper fleet may come of that.
fn may_go_later(held: &HeldBack) -> bool {
    matches!(
        held.code,
        ReasonCode::BudgetExhausted
            | ReasonCode::ConsolidateAfterNotElapsed
            | ReasonCode::ConfirmationNeeded
            | ReasonCode::WaitsForOtherMove
            | ReasonCode::WaitsForCanary
            | ReasonCode::RolloutHalted
    )
}

/// `within 1.2 % of the cheapest possible`, where the bound is known and worth saying. It is about all that nodes cost,
/// where that decides.
fn distance_from_cheapest(summary: &Summary) -> Option<String> {
    match &summary.costs_per_hour {
        Some(costs) => distance(costs.total(), costs.lower_bound),
        None => distance(summary.price_per_hour_after, summary.lower_bound_price_per_hour),
    }
}

/// `with 31 nodes instead of 125: +$0.4200/h`: another point of the curve, where it is worth knowing.
pub fn fewer_nodes(summary: &Summary) -> Option<String> {
    let FewerNodes { nodes, instead, per_hour } = summary.fewer_nodes.as_ref()?;
    let (nodes, instead) = (count(*nodes, "new node"), thousands(&instead.to_string()));
    Some(format!("with {nodes} instead of {instead}: {}", signed_per_hour(*per_hour)))
}

/// `instances $51.6200/h, volumes $0.1490/h, per node $1.3600/h`: what the nodes cost after a plan, part by part;
/// `None` where only instances count.
pub fn costs(summary: &Summary) -> Option<String> {
    let costs = summary.costs_per_hour.as_ref()?;
    let parts = [
        ("volumes", costs.volumes),
        ("addresses", costs.addresses),
        ("monitoring", costs.monitoring),
        ("per node", costs.per_node),
    ];
    let parts = parts.into_iter().filter(|(_, cost)| *cost > HourlyPrice::ZERO);
    let parts: Vec<String> = [("instances", costs.instances)]
        .into_iter()
        .chain(parts)
        .map(|(name, cost)| format!("{name} {cost}"))
        .collect();
    Some(parts.join(", "))
}

/// `within 1.2 % of the cheapest possible`, for a price and the least that any fleet could cost.
pub fn distance(price: HourlyPrice, bound: Option<HourlyPrice>) -> Option<String> {
    let cheapest = bound?;
    let above = i128::from((price - cheapest).nanodollars());
    let per_mille = match i128::from(cheapest.nanodollars()) {
        // No node is needed, and there is no share of nothing.
        ..=0 if above > 0 => return None,
        ..=0 => 0,
        // The share is rounded up, so that the text promises no more than is so.
        cheapest => (above * 1000 + cheapest - 1).div_euclid(cheapest).max(0),
    };
    if per_mille > PER_MILLE_WORTH_SAYING {
        return None;
    }
    Some(if per_mille == 0 {
        "the cheapest possible".to_owned()
    } else {
        format!("within {}.{} % of the cheapest possible", per_mille / 10, per_mille % 10)
    })
}

/// `1 pod`, `12,000 pods`
pub fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", thousands(&number.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(dollars: f64) -> HourlyPrice {
        HourlyPrice::from_dollars(dollars).unwrap()
    }

    #[test]
    fn amounts_are_short() {
        assert_eq!([5150, 7910, 10_000, 100, 4, 5].map(cores), ["5.15", "7.91", "10", "0.1", "0", "0.01"]);
        assert_eq!([320 << 20, 14_162 << 20, 0].map(gibibytes), ["0.3", "13.8", "0.0"]);
        let mut requests = Resources::new();
        requests.set(CPU, 250);
        assert_eq!(amounts_of(&requests), ["cpu 0.25"]);
        requests.set(MEMORY, 320 << 20);
        assert_eq!(amounts_of(&requests), ["cpu 0.25", "memory 0.3 GiB"]);
        assert_eq!(count(1, "pod"), "1 pod");
        assert_eq!(count(12_000, "pod"), "12,000 pods");
    }

    #[test]
    fn money_has_a_sign_and_a_month_has_730_hours() {
        assert_eq!(money(price(0.3276)), "+$0.3276/h (+$239.15/month)");
        assert_eq!(money(-price(12.5)), "-$12.5000/h (-$9,125.00/month)");
        assert_eq!(money(HourlyPrice::ZERO), "+$0.0000/h (+$0.00/month)");
    }

    #[test]
    fn nodes_that_may_go_later_are_said_beside_the_bound() {
        let held = |node: &str, code| HeldBack {
            node: node.to_owned(),
            code,
            text: String::new(),
            kind: Vec::new(),
            budget: None,
            definition: None,
        };
        let summary = Summary {
            price_per_hour_after: price(1.0),
            lower_bound_price_per_hour: Some(price(1.0)),
            ..Summary::default()
        };
        let all = [
            held("a", ReasonCode::NotCheaper),
            held("b", ReasonCode::WaitsForCanary),
            held("c", ReasonCode::BudgetExhausted),
        ];
        for (held, said) in [
            (&all[..1], "the cheapest possible"),
            (&all[..2], "the cheapest possible while 1 node stays"),
            (&all[..], "the cheapest possible while 2 nodes stay"),
        ] {
            assert_eq!(distance_of(&summary, held).as_deref(), Some(said));
        }
    }

    #[test]
    fn the_distance_is_never_promised_smaller_than_it_is() {
        let distance = |after: f64, bound: Option<f64>| {
            let summary = Summary {
                price_per_hour_after: price(after),
                lower_bound_price_per_hour: bound.map(price),
                ..Summary::default()
            };
            distance_from_cheapest(&summary)
        };
        assert_eq!(distance(1.0119, Some(1.0)).as_deref(), Some("within 1.2 % of the cheapest possible"));
        assert_eq!(distance(1.0001, Some(1.0)).as_deref(), Some("within 0.1 % of the cheapest possible"));
        assert_eq!(distance(1.0, Some(1.0)).as_deref(), Some("the cheapest possible"));
        assert_eq!(distance(0.0, Some(0.0)).as_deref(), Some("the cheapest possible"));
        assert_eq!(distance(1.0, Some(0.0)), None);
        assert_eq!(distance(1.0, None), None);
    }
}
