//! Which pull requests are looked at in one round where too many are open: those opened last in each, and of the others some in turn.

use std::cmp::Reverse;

use crate::ports::pull_requests::PullRequest;

/// Pull requests that are looked at in a round. Each is planned, and what was planned is kept.
pub const IN_A_ROUND: usize = 200;
/// So many of them are some of those that are too many. They are planned anew each time.
pub const IN_TURN: usize = 5;

/// Whose turn it was.
#[derive(Default)]
pub struct Turns {
    last: Option<u64>,
    are_told: bool,
}

/// One round.
pub struct Round {
    /// Newest first.
    pub looked_at: Vec<PullRequest>,
    /// Those whose turn comes later.
    pub left_out: Vec<u64>,
    /// What is to be said of it: once, until there are fewer again.
    pub told: Option<String>,
}

impl Turns {
    /// The next round, of all that are open.
    pub fn next(&mut self, mut open: Vec<PullRequest>) -> Round {
        open.sort_by_key(|it| Reverse(it.number));
        if open.len() <= IN_A_ROUND {
            *self = Self::default();
            return Round { looked_at: open, left_out: Vec::new(), told: None };
        }
        let told = (!self.are_told).then(|| told(open.len()));
        let mut looked_at = open;
        let mut older = looked_at.split_off(IN_A_ROUND - IN_TURN);
        let next = older.iter().position(|it| self.last.is_some_and(|last| it.number < last)).unwrap_or_default();
        older.rotate_left(next);
        let left_out = older.split_off(IN_TURN).into_iter().map(|it| it.number).collect();
        (self.last, self.are_told) = (older.last().map(|it| it.number), true);
        looked_at.extend(older);
        Round { looked_at, left_out, told }
    }
}

fn told(open: usize) -> String {
    format!(
        "warning: {open} pull requests are open, more than the {IN_A_ROUND} that are looked at in a round: of the {} that were opened \
         first {IN_TURN} take a turn in each, so their statuses come late; close those that nobody works on",
        open - (IN_A_ROUND - IN_TURN)
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn open(numbers: impl Iterator<Item = u64>) -> Vec<PullRequest> {
        numbers.map(|number| PullRequest { number, ..PullRequest::default() }).collect()
    }

    #[test]
    fn none_of_too_many_is_left_out_for_ever() {
        let mut turns = Turns::default();
        let few = turns.next(open(1..=200));
        assert!(few.looked_at.len() == IN_A_ROUND && few.left_out.is_empty() && few.told.is_none());
        let mut seen = BTreeSet::new();
        for round in 0..3 {
            // One more is opened each time.
            let Round { looked_at, left_out, told } = turns.next(open(1..=207 + round));
            assert_eq!((looked_at.len(), told.is_some()), (IN_A_ROUND, round == 0));
            assert_eq!(looked_at.first().map(|it| it.number), Some(207 + round), "the newest is in each");
            assert_eq!(left_out.len() as u64, 7 + round);
            let numbers: BTreeSet<u64> = looked_at.iter().map(|it| it.number).chain(left_out).collect();
            assert_eq!(numbers.len() as u64, 207 + round);
            seen.extend(looked_at.iter().map(|it| it.number));
        }
        assert_eq!(seen.len(), 209, "each had its turn");
        assert!(turns.next(open(1..=200)).told.is_none() && turns.next(open(1..=201)).told.is_some());
    }

    #[test]
    fn what_is_said_counts_those_that_come_late() {
        let said = told(260);
        assert!(
            said.contains("260 pull requests are open") && said.contains("of the 65 that were opened first 5"),
            "{said}"
        );
    }
}
