//! Why a node stays, with what it would go for and where the definitions have what keeps it.

use std::fmt;

use crate::model::HourlyPrice;
use crate::plan::{DefinitionPlace, ReasonCode};

use super::obstacle::NodeObstacle;
use super::obstacle::own_place::OwnPlace;
use super::removal_cause::RemovalCause;

/// A node that stays. Data until the report is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    pub obstacle: Box<NodeObstacle>,
    /// What it would go for.
    pub cause: Option<Cause>,
    /// Whether it goes, whatever it costs, as soon as its pods have a place.
    pub goes_when_placed: bool,
    /// What it takes itself and would have to be free for it to go.
    pub own_place: Option<OwnPlace>,
    /// Why it does not go to save money either.
    pub saves_nothing: Option<Box<Refused>>,
    pub definition: Option<DefinitionPlace>,
}

/// What a node would go for.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    Removal(Box<RemovalCause>),
    Saving { at_most: HourlyPrice },
}

impl Refused {
    /// With what the node would go for.
    pub fn although(self, cause: impl Into<Cause>) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }

    /// With why the node does not go to save money either. A budget may refuse it for both.
    pub fn nor_to_save(self, other: Self) -> Self {
        if other.cause.is_none() && other.obstacle == self.obstacle {
            return self;
        }
        Self { saves_nothing: Some(Box::new(other)), ..self }
    }

    /// What it has in common with those of other nodes, in words.
    pub fn kind(&self) -> Vec<String> {
        let mut kind = match &self.cause {
            Some(Cause::Removal(cause)) => cause.kind(),
            Some(Cause::Saving { .. }) => vec![ReasonCode::Underutilized.word()],
            None => Vec::new(),
        };
        kind.extend(self.obstacle.kind());
        kind.extend(self.goes_when_placed.then(|| "GoesWhenPlaced".to_owned()));
        kind.extend(self.own_place.is_some().then(|| "OwnPlace".to_owned()));
        kind.extend(self.saves_nothing.iter().flat_map(|other| other.kind()));
        kind
    }
}

impl<O: Into<NodeObstacle>> From<O> for Refused {
    fn from(obstacle: O) -> Self {
        Self {
            obstacle: Box::new(obstacle.into()),
            cause: None,
            goes_when_placed: false,
            own_place: None,
            saves_nothing: None,
            definition: None,
        }
    }
}

impl From<&RemovalCause> for Cause {
    fn from(cause: &RemovalCause) -> Self {
        Self::Removal(Box::new(cause.clone()))
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Some(Cause::Removal(cause)) => write!(out, "{cause}, but ")?,
            Some(Cause::Saving { at_most }) => write!(out, "Underutilized: up to {at_most} could be saved, but ")?,
            None => {}
        }
        write!(out, "{}", self.obstacle)?;
        if self.goes_when_placed {
            out.write_str("; it stays until they have one")?;
        }
        if let Some(own) = &self.own_place {
            write!(out, "; {own}, so it will not go by itself: {}", own.advice())?;
        }
        match &self.saves_nothing {
            Some(other) => write!(out, "; nor does it go to save money: {other}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disrupt::obstacle::rollout::RolloutObstacle;

    #[test]
    fn a_node_is_refused_twice_for_the_same_only_once() {
        let waits = || RolloutObstacle::CanaryReplaces { node: "a".to_owned() };
        let drifted = RemovalCause::PoolRemoved { node_pool: "old".to_owned() };
        let first = || Refused::from(waits()).although(&drifted);
        assert_eq!(first().nor_to_save(waits().into()), first());
        let other = first().nor_to_save(RolloutObstacle::CanaryComes { node_claim: "b".to_owned() }.into());
        assert_eq!(other.kind(), ["NodePoolRemoved", "old", "CanaryReplaces", "CanaryComes"]);
        assert_eq!(
            other.to_string(),
            "NodePool old was removed from the definitions, but it waits for the canary, which replaces a; nor does it go to save money: \
             it waits for the canary b, which is not ready yet"
        );
    }
}
