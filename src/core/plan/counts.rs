//! How many nodes steps are about: one way to count for the summary of a plan, the headline of a preview and what each cause does.

use std::collections::BTreeMap;

use super::{Step, StepKind};

/// Nodes, not moves: a move may take many, and buy another number in their place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// Bought by moves that remove nothing.
    pub created: usize,
    /// Removed by moves that buy something in their place.
    pub replaced: usize,
    /// Bought in their place.
    pub replacements: usize,
    /// Removed by moves that buy nothing.
    pub removed: usize,
    pub adopted: usize,
    /// Those that wait for a confirmation.
    pub held: usize,
}

impl NodeCounts {
    /// Of these steps alone: of a move of which only some are among them, these count.
    pub fn of<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Self {
        let mut counts = Self::default();
        let mut moves: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
        for step in steps {
            let (bought, gone) = moves.entry(step.move_number).or_default();
            match step.kind {
                StepKind::Create => *bought += 1,
                StepKind::Remove => *gone += 1,
                StepKind::Adopt => counts.adopted += 1,
                StepKind::Hold => counts.held += 1,
            }
        }
        for (bought, gone) in moves.into_values() {
            if bought > 0 && gone > 0 {
                counts.replacements += bought;
                counts.replaced += gone;
            } else {
                counts.created += bought;
                counts.removed += gone;
            }
        }
        counts
    }

    /// Whether nodes go because of these steps, now or once somebody confirms it.
    pub fn takes_nodes(&self) -> bool {
        self.replaced + self.removed + self.held > 0
    }
}
