//! How many nodes steps are about: one way to count for the summary of a plan, the headline of a preview and what each cause does.

use super::{Step, StepKind, blocks};

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
        for block in blocks(steps) {
            let replaces = block.len() > 1;
            for step in block {
                let count = match (step.kind, replaces) {
                    (StepKind::Create, false) => &mut counts.created,
                    (StepKind::Create, true) => &mut counts.replacements,
                    (StepKind::Remove, false) => &mut counts.removed,
                    (StepKind::Remove, true) => &mut counts.replaced,
                    (StepKind::Adopt, _) => &mut counts.adopted,
                    (StepKind::Hold, _) => &mut counts.held,
                };
                *count += 1;
            }
        }
        counts
    }

    /// Whether nodes go because of these steps, now or once somebody confirms it.
    pub fn takes_nodes(&self) -> bool {
        self.replaced + self.removed + self.held > 0
    }
}
