//! A budget that lets no more nodes go.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;

use crate::model::HourlyPrice;
use crate::plan::{BudgetKind, DefinitionPlace, HoldingBudget, kind};

/// A budget that lets no more nodes go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpentBudget {
    pub kind: BudgetKind,
    pub name: String,
    pub spent: Spent,
    /// Where it is written.
    pub definition: Option<DefinitionPlace>,
}

/// What it has no more of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spent {
    /// By a window, in words.
    ByWindow(String),
    Money {
        limit_per_hour: HourlyPrice,
        left: HourlyPrice,
        /// What the node costs.
        price: HourlyPrice,
    },
    Nodes {
        allowed: usize,
        counted: usize,
        /// As written.
        nodes: String,
        taken: usize,
        held_by: Option<HeldBy>,
    },
}

/// Nodes on their way out that count, of which one has been so for longest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBy {
    node: String,
    since: Timestamp,
    further: usize,
}

impl HeldBy {
    pub fn of(leaving: &BTreeSet<(Timestamp, String)>) -> Option<Self> {
        let (since, node) = leaving.first()?;
        Some(Self { node: node.clone(), since: *since, further: leaving.len().saturating_sub(1) })
    }
}

impl fmt::Display for HeldBy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} counts as well, on its way out since {}", self.node, self.since)?;
        if self.further > 0 { write!(out, ", and {} more", self.further) } else { Ok(()) }
    }
}

impl SpentBudget {
    /// As the report names it.
    pub fn for_plan(&self) -> HoldingBudget {
        let is_out_of_money = matches!(self.spent, Spent::Money { .. });
        HoldingBudget { kind: self.kind, name: self.name.clone(), is_out_of_money }
    }

    pub fn kind(&self) -> Vec<String> {
        let spent = match self.spent {
            Spent::ByWindow(_) => "Window",
            Spent::Money { .. } => "Money",
            Spent::Nodes { .. } => "Nodes",
        };
        match self.kind {
            BudgetKind::NodePool => kind(["NodePool", &self.name, spent]),
            BudgetKind::DisruptionBudget => kind(["DisruptionBudget", &self.name, spent]),
        }
    }
}

impl fmt::Display for SpentBudget {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, spent, .. } = self;
        match kind {
            BudgetKind::NodePool => write!(out, "NodePool {name} ")?,
            BudgetKind::DisruptionBudget => write!(out, "DisruptionBudget {name} ")?,
        }
        match spent {
            Spent::ByWindow(window) => write!(out, "allows nothing now: {window}"),
            Spent::Money { limit_per_hour, left, price } => {
                write!(out, "has moneyPerHour {limit_per_hour}, of which {left} are left, and the node costs {price}")
            }
            Spent::Nodes { allowed, counted, nodes, taken, held_by } => {
                write!(out, "allows {allowed} of {counted} nodes now ({nodes}), {taken} taken by this plan")?;
                held_by.iter().try_for_each(|held_by| write!(out, "; {held_by}"))
            }
        }
    }
}
