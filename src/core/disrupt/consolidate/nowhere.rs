//! Pods that no node could be bought for at any price: what is wrong with their node is not what it costs.

use crate::disrupt::obstacle::NodeObstacle;
use crate::plan::DefinitionPlaces;
use crate::provision::explain::explain;
use crate::scheduler::{ClassIndex, Engine};

/// An explanation looks at every type of every pool; where so many nodes stay, the others have their reason without it.
const EXPLAINED_MAX: usize = 100;

#[derive(Debug, Default)]
pub(super) struct Nowhere {
    explained: usize,
}

impl Nowhere {
    /// Of pods that no other node has room for, those for which no pool makes a node, if there are some, and what keeps one of them
    /// from the nearest pool. `of`: how many pods would have to move. O(classes x pools x types).
    pub(super) fn obstacle(
        &mut self,
        engine: &Engine<'_, '_>,
        mut unplaceable: Vec<(ClassIndex, usize)>,
        of: usize,
        places: &DefinitionPlaces,
    ) -> Option<NodeObstacle> {
        unplaceable.retain(|(class, _)| {
            let mut variants = engine.problem.classes[*class].variants.iter();
            !variants.any(|variant| engine.opens(*class, *variant))
        });
        let (class, _) = *unplaceable.first()?;
        let is_explained = self.explained < EXPLAINED_MAX;
        self.explained += usize::from(is_explained);
        let nearest = || explain(engine, class, places).into_iter().next().map(Box::new);
        let pods = unplaceable.iter().map(|(_, count)| count).sum();
        Some(NodeObstacle::NoPlace { pods, of, nearest: is_explained.then(nearest).flatten() })
    }
}
