//! What a consolidation does, and what it saves.

use std::fmt;

use crate::model::HourlyPrice;
use crate::model::words::pods_text;
use crate::plan::Balance;

use super::obstacle::{part_disrupted, part_saved};

#[derive(Clone, Debug, PartialEq)]
pub struct Saving {
    /// How many nodes go, and how many of their pods need another place.
    pub nodes: usize,
    pub pods: usize,
    pub nodes_bought: usize,
    /// What the instances of the nodes cost together, and those of the new ones.
    pub before: HourlyPrice,
    pub bought: HourlyPrice,
    /// What the nodes cost beside their instances, less what the new ones do.
    pub saved_beside: HourlyPrice,
    /// Of pools with `Balanced`.
    pub balances: Vec<Balance>,
}

impl fmt::Display for Saving {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Underutilized: ")?;
        self.write_move(out)?;
        self.balances.iter().try_for_each(|it| write!(out, "; Balanced: {} for {}", part_saved(it), part_disrupted(it)))
    }
}

impl Saving {
    fn write_move(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, pods, nodes_bought, before, bought, saved_beside, .. } = self;
        let saving = *before - *bought;
        if saving <= HourlyPrice::ZERO && *nodes_bought > 0 {
            let more = if saving < HourlyPrice::ZERO { format!("{} more", -saving) } else { "no more".to_owned() };
            return write!(
                out,
                "{} for {bought} instead of {} for {before}: {more} for instances, {saved_beside} less beside them",
                nodes_text(*nodes_bought),
                nodes_text(*nodes)
            );
        }
        match (nodes, nodes_bought) {
            (1, 0) => write!(out, "its {} on other nodes, saves {saving}", fit_text(*pods)),
            (1, 1) => write!(out, "a node for {bought} is enough, saves {saving}"),
            (1, bought_nodes) => write!(out, "{bought_nodes} nodes for {bought} are enough, saves {saving}"),
            (gone, 0) => write!(out, "the {} of {gone} nodes fit on others, saves {saving}", pods_text(*pods)),
            (gone, 1) => write!(out, "one node for {bought} instead of {gone} for {before}, saves {saving}"),
            (gone, bought_nodes) => {
                write!(out, "{bought_nodes} nodes for {bought} instead of {gone} for {before}, saves {saving}")
            }
        }
    }
}

/// `1 node`, `5 nodes`
fn nodes_text(nodes: usize) -> String {
    if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") }
}

/// `pod fits`, `5 pods fit`
fn fit_text(pods: usize) -> String {
    if pods == 1 { "pod fits".to_owned() } else { format!("{pods} pods fit") }
}
