//! Why a node does not go to save money, once it may.

use std::fmt;

use crate::model::HourlyPrice;
use crate::model::time::duration_text;
use crate::model::words::{part_of, pods_text};
use crate::plan::{Balance, ReasonCode, kind};
use crate::provision::amounts::amount;
use crate::provision::purchase::Lowered;
use crate::scheduler::quota::LimitScope;

/// Source: the reference's `MinInstanceTypesForSpotToSpotConsolidation`.
pub(super) const SPOT_TO_SPOT_TYPES: usize = 15;

#[derive(Clone, Debug, PartialEq)]
pub enum NotSaved {
    /// It gets pods by this plan.
    Receives,
    NoPrice,
    MovesUnderWay,
    /// Its pods fit on nodes that take none for a moment.
    RoomSoon,
    /// What keeps some of its pods from other nodes; nothing is bought for them.
    NoRoom(NoRoomFor),
    /// One cheaper node would do, and a limit has no room for it beside this one.
    Limit(Box<LimitInTheWay>),
    CostsNothing,
    NothingIsSaved,
    /// What is saved is less than what it counts that more of a workload is together.
    Concentration {
        saving: HourlyPrice,
        counts: HourlyPrice,
    },
    Payback {
        saving: HourlyPrice,
        /// Whether a trial said what would be saved, or only a bound.
        is_bound: bool,
        seconds: i64,
        limit_seconds: i64,
    },
    /// Of a pool with `Balanced`.
    NotBalanced(Balance),
    /// Cheaper types of spot that there are; the reference asks for more.
    FewSpotTypes {
        types: usize,
    },
    /// `minValues` that cheaper types do not meet.
    MinValues(Lowered),
    SpotToSpotIsOff,
    /// A node like it is created by an earlier move.
    LikeOneCreated,
    /// It would take a node like one that an earlier move removes.
    LikeOneRemoved,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LimitInTheWay {
    pub scope: LimitScope,
    pub node_pool: String,
    pub resource: String,
    /// Amounts as of [`Resources`](crate::model::Resources): `cpu` in thousandths of a core.
    pub limit: i64,
    pub used: i64,
    pub needed: i64,
    pub instance_type: String,
    pub saving: HourlyPrice,
}

/// Pods of a node that do not all find other places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoomFor {
    /// So many fit neither on other nodes nor on one cheaper node; of NodePools of this weight and above, where there are others.
    OneCheaperNode { pods: usize, of: usize, preferring: usize, weight_least: Option<i32> },
    /// So many fit on no other node, and a rollout keeps new ones from coming.
    WhileRolloutWaits { pods: usize, of: usize },
    /// So many fit on no other node, and new ones cost as much: those that have what some pods prefer, where they do.
    Some { pods: usize, of: usize, preferring: usize, some_prefer: bool },
    /// Each fits on another node, but not all of them do, and new ones cost as much.
    AllTogether { of: usize, some_prefer: bool },
    /// None fits, or it was not looked at how many; new ones cost as much.
    Any,
}

impl NotSaved {
    pub fn code(&self) -> ReasonCode {
        match self {
            Self::Receives => ReasonCode::NominatedForPods,
            Self::NoPrice => ReasonCode::UnknownInstanceType,
            Self::MovesUnderWay | Self::RoomSoon | Self::LikeOneCreated | Self::LikeOneRemoved => {
                ReasonCode::WaitsForOtherMove
            }
            Self::NoRoom(_)
            | Self::CostsNothing
            | Self::NothingIsSaved
            | Self::Concentration { .. }
            | Self::FewSpotTypes { .. }
            | Self::MinValues(_) => ReasonCode::NotCheaper,
            Self::Payback { .. } => ReasonCode::PaybackTooLong,
            Self::Limit(_) => ReasonCode::LimitReached,
            Self::NotBalanced(_) => ReasonCode::ConsolidationDisabled,
            Self::SpotToSpotIsOff => ReasonCode::NotSupported,
        }
    }

    pub fn kind(&self) -> Vec<String> {
        match self {
            Self::Receives => kind(["Receives"]),
            Self::NoPrice => kind(["NoPrice"]),
            Self::MovesUnderWay => kind(["MovesUnderWay"]),
            Self::RoomSoon => kind(["RoomSoon"]),
            Self::NoRoom(pods) => pods.kind(),
            Self::Limit(limit) => limit.kind(),
            Self::CostsNothing => kind(["CostsNothing"]),
            Self::NothingIsSaved => kind(["NothingIsSaved"]),
            Self::Concentration { .. } => kind(["Concentration"]),
            Self::Payback { is_bound: true, .. } => kind(["Payback", "Bound"]),
            Self::Payback { is_bound: false, .. } => kind(["Payback"]),
            Self::NotBalanced(balance) => kind(["NotBalanced", &balance.node_pool]),
            Self::FewSpotTypes { .. } => kind(["FewSpotTypes"]),
            Self::MinValues(lowered) => kind(["MinValues", &lowered.key]),
            Self::SpotToSpotIsOff => kind(["SpotToSpotIsOff"]),
            Self::LikeOneCreated => kind(["LikeOneCreated"]),
            Self::LikeOneRemoved => kind(["LikeOneRemoved"]),
        }
    }
}

impl LimitInTheWay {
    fn kind(&self) -> Vec<String> {
        match self.scope {
            LimitScope::Cluster => kind(["LimitInTheWay", "cutlist.yaml", &self.resource]),
            _ => kind(["LimitInTheWay", &self.node_pool, &self.resource]),
        }
    }
}

impl NoRoomFor {
    /// So many pods fit on no other node; where each does, not all of them do.
    pub(super) fn other_nodes(pods: usize, of: usize, preferring: usize, some_prefer: bool) -> Self {
        match pods {
            0 => Self::AllTogether { of, some_prefer },
            _ => Self::Some { pods, of, preferring, some_prefer },
        }
    }

    fn kind(self) -> Vec<String> {
        match self {
            Self::OneCheaperNode { pods, preferring, .. } => {
                kind(["NoRoom", "OneCheaperNode", kind_of_preferences(pods, preferring)])
            }
            Self::WhileRolloutWaits { .. } => kind(["NoRoom", "WhileRolloutWaits"]),
            Self::Some { pods, preferring, .. } => kind(["NoRoom", "Some", kind_of_preferences(pods, preferring)]),
            Self::AllTogether { .. } => kind(["NoRoom", "AllTogether"]),
            Self::Any => kind(["NoRoom"]),
        }
    }
}

fn kind_of_preferences(pods: usize, preferring: usize) -> &'static str {
    match preferring {
        0 => "NonePrefers",
        _ if preferring == pods => "AllPrefer",
        _ => "SomePrefer",
    }
}

impl fmt::Display for NotSaved {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Receives => out.write_str("pods of another node get their place here"),
            Self::NoPrice => out.write_str("the catalog has no price for its instance type, zone and capacity type"),
            Self::MovesUnderWay => out.write_str("looked at again when the nodes that are on their way are up or gone"),
            Self::RoomSoon => out.write_str(
                "its pods fit on nodes where pods came or went a moment ago: nothing is bought for them meanwhile",
            ),
            Self::NoRoom(pods) => write!(out, "{pods}"),
            Self::Limit(limit) => write!(out, "{limit}"),
            Self::CostsNothing => out.write_str("it costs nothing"),
            Self::NothingIsSaved => out.write_str("nothing would be saved"),
            Self::Concentration { saving, counts } => {
                write!(out, "would save {saving}, but put more of a workload together, which counts {counts}")
            }
            Self::Payback { saving, is_bound, seconds, limit_seconds } => {
                let (seconds, limit) = (duration_text(*seconds), duration_text(*limit_seconds));
                if *is_bound {
                    write!(out, "at most {saving} could be saved, which repays the disruption only after {seconds}")?;
                } else {
                    write!(out, "would save {saving}, but repays the disruption only after {seconds}")?;
                }
                write!(out, " (payback {limit})")
            }
            Self::NotBalanced(balance) => {
                let (saved, disrupted) = (part_saved(balance), part_disrupted(balance));
                write!(out, "consolidationPolicy: Balanced: {saved} would be saved for {disrupted}")
            }
            Self::FewSpotTypes { types } => {
                write!(out, "spot by spot: {types} cheaper types, {SPOT_TO_SPOT_TYPES} are needed")
            }
            Self::MinValues(Lowered { key, asked, there }) => {
                write!(out, "cheaper types have {there} values of {key}, minValues asks for {asked}")
            }
            Self::SpotToSpotIsOff => {
                out.write_str("spot is not replaced by spot: spec.featureGates.SpotToSpotConsolidation is off")
            }
            Self::LikeOneCreated => out.write_str("a node like it is created by an earlier move of this plan"),
            Self::LikeOneRemoved => out.write_str("it would take a node like one that this plan removes"),
        }
    }
}

impl fmt::Display for LimitInTheWay {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scope, node_pool, resource, limit, used, needed, instance_type, saving } = self;
        let amount = |value: i64| amount(resource, value);
        let (field, of) = match scope {
            LimitScope::Cluster => ("spec.limits", "cutlist.yaml".to_owned()),
            _ => ("limits", format!("NodePool {node_pool}")),
        };
        write!(
            out,
            "{instance_type} would be enough, and save {saving}, but {field}.{resource} {} of {of} leaves no room for it beside \
             this node: {} used, {} needed; with {} it would go",
            amount(*limit),
            amount(*used),
            amount(*needed),
            amount(used.saturating_add(*needed)),
        )
    }
}

impl fmt::Display for NoRoomFor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OneCheaperNode { pods, of, preferring, weight_least } => {
                let why = preferences_text(pods, preferring);
                write!(out, "{} fit neither on other nodes{why} nor on one cheaper node", part_of(pods, of))?;
                weight_least.map_or(Ok(()), |weight| write!(out, " of a NodePool of weight {weight} or more"))
            }
            Self::WhileRolloutWaits { pods, of } => {
                write!(out, "{} fit on no other node, and none is bought before the rollout goes on", part_of(pods, of))
            }
            Self::Some { pods, of, preferring, some_prefer } => {
                let (why, new) = (preferences_text(pods, preferring), new_ones(some_prefer));
                write!(out, "{} fit on no other node{why}, and {new} would cost as much", part_of(pods, of))
            }
            Self::AllTogether { of, some_prefer } => write!(
                out,
                "each of its {} fits on another node, but not all of them do, and {} would cost as much",
                pods_text(of),
                new_ones(some_prefer)
            ),
            Self::Any => out.write_str("its pods fit on no other node, and new ones would cost as much"),
        }
    }
}

/// What is not bought.
fn new_ones(some_prefer: bool) -> &'static str {
    if some_prefer { "new ones that have what pods prefer" } else { "new ones" }
}

/// Why pods do not fit on other nodes, where some of them would if they gave up what they prefer; begins with a space or a comma.
fn preferences_text(pods: usize, preferring: usize) -> String {
    match preferring {
        0 => String::new(),
        _ if preferring == pods => " because of what they prefer".to_owned(),
        _ => format!(", {preferring} of them because of what they prefer,"),
    }
}

pub(super) fn part_saved(balance: &Balance) -> String {
    format!("{:.1} % of the price of NodePool {}", balance.savings_percent, balance.node_pool)
}

pub(super) fn part_disrupted(balance: &Balance) -> String {
    format!("{:.1} % of its disruption cost", balance.disruption_percent)
}
