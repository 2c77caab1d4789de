//! A budget that lets no more nodes go.

use std::fmt;

use crate::model::HourlyPrice;
use crate::plan::{BudgetKind, DefinitionPlace, HoldingBudget};

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
    },
}

impl SpentBudget {
    /// As the report names it.
    pub fn for_plan(&self) -> HoldingBudget {
        let is_out_of_money = matches!(self.spent, Spent::Money { .. });
        HoldingBudget { kind: self.kind, name: self.name.clone(), is_out_of_money }
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
            Spent::Nodes { allowed, counted, nodes, taken } => {
                write!(out, "allows {allowed} of {counted} nodes now ({nodes}), {taken} taken by this plan")
            }
        }
    }
}
