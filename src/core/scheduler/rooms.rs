//! Which types have room for a request, answered with a few dozen word operations.

use fixedbitset::FixedBitSet;

use super::vectors::Vector;

/// For each dimension, the types by the room they have.
#[derive(Debug)]
pub struct Rooms {
    dimensions: Vec<Dimension>,
}

#[derive(Debug)]
struct Dimension {
    /// Distinct amounts of room, ascending.
    amounts: Vec<i64>,
    /// By position in `amounts`: the types with at least that much.
    at_least: Vec<FixedBitSet>,
}

impl Rooms {
    /// `room` by type and dimension. O(dimensions x types x types / 64).
    pub fn new(room: &[Vector], dimensions: usize) -> Self {
        Self { dimensions: (0..dimensions).map(|dimension| Dimension::new(room, dimension)).collect() }
    }

    /// The types of `among` with room for the request. O(dimensions x (log types + types / 64)).
    pub fn fitting(&self, request: &[i64], among: &FixedBitSet) -> FixedBitSet {
        let mut fitting = among.clone();
        for (dimension, amount) in self.dimensions.iter().zip(request).filter(|(_, amount)| **amount > 0) {
            match dimension.at_least(*amount) {
                Some(types) => fitting.intersect_with(types),
                None => fitting.clear(),
            }
        }
        fitting
    }

    /// By dimension the most room that any of these types has; the least there is without types. O(dimensions x types / 64) where
    /// one of the roomiest is among them.
    pub fn most(&self, types: &FixedBitSet) -> Vector {
        self.dimensions.iter().map(|dimension| dimension.most(types)).collect()
    }

    /// Whether all of these types have room for the request.
    pub fn all_fit(&self, request: &[i64], types: &FixedBitSet) -> bool {
        let asked = self.dimensions.iter().zip(request).filter(|(_, amount)| **amount > 0);
        asked
            .into_iter()
            .all(|(dimension, amount)| dimension.at_least(*amount).is_some_and(|with_room| types.is_subset(with_room)))
    }
}

impl Dimension {
    fn new(room: &[Vector], dimension: usize) -> Self {
        let mut by_amount: Vec<(i64, usize)> =
            room.iter().enumerate().map(|(position, room)| (room[dimension], position)).collect();
        by_amount.sort_unstable_by(|one, two| two.cmp(one));
        let (mut amounts, mut at_least) = (Vec::new(), Vec::new());
        let mut types = FixedBitSet::with_capacity(room.len());
        for alike in by_amount.chunk_by(|one, two| one.0 == two.0) {
            types.extend(alike.iter().map(|(_, position)| *position));
            amounts.push(alike[0].0);
            at_least.push(types.clone());
        }
        amounts.reverse();
        at_least.reverse();
        Self { amounts, at_least }
    }

    fn most(&self, types: &FixedBitSet) -> i64 {
        let roomiest =
            self.amounts.iter().zip(&self.at_least).rev().find(|(_, with_room)| !with_room.is_disjoint(types));
        roomiest.map_or(i64::MIN, |(amount, _)| *amount)
    }

    fn at_least(&self, amount: i64) -> Option<&FixedBitSet> {
        self.at_least.get(self.amounts.partition_point(|room| *room < amount))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::vectors;

    #[test]
    fn the_same_types_as_comparing_each() {
        let room: Vec<Vector> = [[4, 8], [2, 16], [4, 4], [-1, 2]].iter().map(|room| Vector::from(*room)).collect();
        let rooms = Rooms::new(&room, 2);
        let mut all = FixedBitSet::with_capacity(room.len());
        all.insert_range(..);
        for request in [[0, 0], [1, 1], [3, 5], [4, 8], [2, 16], [5, 0], [0, 17], [-3, 3]] {
            let expected: Vec<usize> =
                (0..room.len()).filter(|position| vectors::fits(&request, &room[*position])).collect();
            let fitting = rooms.fitting(&request, &all);
            assert_eq!(fitting.ones().collect::<Vec<_>>(), expected, "{request:?}");
            assert_eq!(rooms.all_fit(&request, &all), expected.len() == room.len(), "{request:?}");
            let most = |dimension: usize| expected.iter().map(|position| room[*position][dimension]).max();
            assert_eq!(
                *rooms.most(&fitting),
                [0, 1].map(|dimension| most(dimension).unwrap_or(i64::MIN)),
                "{request:?}"
            );
        }
    }
}
