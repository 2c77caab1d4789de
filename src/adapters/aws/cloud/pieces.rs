//! How much of a batch is asked for at once. EC2 counts calls, and the instances that they ask for: a call that wants more of these than are
//! left is refused as a whole, each time again, and all its claims would wait until EC2's bucket is full, which it never is while others take
//! from it. So it is asked for in pieces.

/// So few are not divided: they get through by waiting, since EC2's bucket gains more while one call is patient; and where calls are what EC2
/// counts, more of them would only be slower.
const SMALLEST: u32 = 30;

/// What EC2 said to the batches of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pieces {
    /// Refusals for the rate since the last answer.
    refusals: u32,
    /// The most that is asked for at once; `None`: everything.
    most: Option<u32>,
}

/// Whether a smaller call would do where this one is refused.
pub fn is_divisible(count: u32) -> bool {
    count > SMALLEST
}

impl Pieces {
    /// How many to ask for where so many are wanted, and there are tokens for `room`.
    pub fn size(self, wanted: u32, room: u32) -> u32 {
        let most = self.most.map_or(room, |most| most.min(room));
        wanted.min(most.max(SMALLEST))
    }

    /// A call for so many was refused for its rate. Whether the next one is another call, for fewer: one refusal alone may be of the calls.
    pub fn refused(&mut self, count: u32) -> bool {
        self.refusals = self.refusals.saturating_add(1);
        let is_smaller = self.refusals > 1 && is_divisible(count);
        if is_smaller {
            self.most = Some(count.div_ceil(2).max(SMALLEST));
        }
        is_smaller
    }

    /// EC2 took a call.
    pub fn taken(&mut self) {
        self.refusals = 0;
    }

    /// Refusals in a row.
    pub fn refusals(self) -> u32 {
        self.refusals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_refusal_in_a_row_halves_down_to_the_smallest() {
        let mut pieces = Pieces::default();
        assert_eq!(pieces.size(1_000, u32::MAX), 1_000);
        let mut sizes = Vec::new();
        for _ in 0..8 {
            let size = pieces.size(1_000, u32::MAX);
            pieces.refused(size);
            sizes.push(size);
        }
        assert_eq!(sizes, [1_000, 1_000, 500, 250, 125, 63, 32, 30]);
        pieces.taken();
        assert_eq!((pieces.size(1_000, u32::MAX), pieces.size(7, u32::MAX)), (30, 7), "it stays small");
    }

    #[test]
    fn what_the_own_bucket_lacks_is_asked_for_later() {
        let pieces = Pieces::default();
        assert_eq!([pieces.size(500, 100), pieces.size(500, 3), pieces.size(20, 3)], [100, 30, 20]);
        assert!(!is_divisible(30) && is_divisible(31));
    }
}
