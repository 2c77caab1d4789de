//! The sort of Go's `sort.Slice`: insertion on up to twelve entries, and beyond that a pattern-defeating quicksort (Orson Peters,
//! arXiv:2106.05123) that draws its chance from the number of entries. It is not stable, but it always leaves the same.

use crate::scheduler::HostIndex;

/// What decides, and who it is of: pods, host.
pub type Entry = (usize, HostIndex);

const INSERTION_MAX: usize = 12;
/// From this length on the pivot is a median of medians, and a few entries out of place are shifted.
const LONG: usize = 50;
const SHIFTS_MAX: usize = 5;

fn less(entries: &[Entry], one: usize, two: usize) -> bool {
    entries[one].0 < entries[two].0
}

pub fn sort(entries: &mut [Entry]) {
    let bad_pivots = usize::BITS - entries.len().leading_zeros();
    quicksort(entries, 0, entries.len(), bad_pivots);
}

/// Whether, of so many entries in order but for the one at `position`, which has become greater than those after it or is a new
/// last one, the sort shifts just this one past those that are less, or before those that are greater. Else it looks unordered
/// where the pivot is looked for, or the list is too short for shifting.
pub fn shifts(count: usize, position: usize) -> bool {
    let quarter = count / 4;
    let is_seen = |middle: usize| position + 1 == middle || position == middle;
    count >= LONG && ![quarter, 2 * quarter, 3 * quarter].into_iter().any(is_seen)
}

fn quicksort(entries: &mut [Entry], mut start: usize, mut end: usize, mut bad_pivots: u32) {
    let (mut balanced, mut partitioned) = (true, true);
    loop {
        let length = end - start;
        if length <= INSERTION_MAX {
            return insert(&mut entries[start..end]);
        }
        if bad_pivots == 0 {
            return heapsort(&mut entries[start..end]);
        }
        if !balanced {
            break_patterns(&mut entries[start..end]);
            bad_pivots -= 1;
        }
        let (mut pivot, mut looks) = choose_pivot(entries, start, end);
        if looks == Looks::Descending {
            entries[start..end].reverse();
            pivot = (end - 1) - (pivot - start);
            looks = Looks::Ascending;
        }
        if balanced && partitioned && looks == Looks::Ascending && shift_few(entries, start, end) {
            return;
        }
        if start > 0 && !less(entries, start - 1, pivot) {
            start = partition_equal(entries, start, end, pivot);
            continue;
        }
        let (middle, was_partitioned) = partition(entries, start, end, pivot);
        partitioned = was_partitioned;
        let (left, right) = (middle - start, end - middle);
        balanced = left.min(right) >= length / 8;
        if left < right {
            quicksort(entries, start, middle, bad_pivots);
            start = middle + 1;
        } else {
            quicksort(entries, middle + 1, end, bad_pivots);
            end = middle;
        }
    }
}

fn insert(entries: &mut [Entry]) {
    for position in 1..entries.len() {
        sink(entries, position, 0);
    }
}

/// Takes an entry forward past greater ones, not beyond `first`.
fn sink(entries: &mut [Entry], mut position: usize, first: usize) {
    while position > first && less(entries, position, position - 1) {
        entries.swap(position, position - 1);
        position -= 1;
    }
}

fn heapsort(entries: &mut [Entry]) {
    let length = entries.len();
    for root in (0..=(length - 1) / 2).rev() {
        sift_down(entries, root, length);
    }
    for end in (0..length).rev() {
        entries.swap(0, end);
        sift_down(entries, 0, end);
    }
}

fn sift_down(entries: &mut [Entry], mut root: usize, end: usize) {
    loop {
        let mut child = 2 * root + 1;
        if child >= end {
            return;
        }
        if child + 1 < end && less(entries, child, child + 1) {
            child += 1;
        }
        if !less(entries, root, child) {
            return;
        }
        entries.swap(root, child);
        root = child;
    }
}

/// Exchanges three entries in the middle for others.
fn break_patterns(entries: &mut [Entry]) {
    let length = entries.len();
    let mut random = length as u64;
    // The next power of two, also of one.
    let mask = u64::MAX >> random.leading_zeros();
    let middle = length / 4 * 2;
    for position in middle - 1..=middle + 1 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let other = usize::try_from(random & mask).unwrap_or(0);
        entries.swap(position, if other >= length { other - length } else { other });
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Looks {
    Ascending,
    Descending,
    Unknown,
}

fn choose_pivot(entries: &[Entry], start: usize, end: usize) -> (usize, Looks) {
    let quarter = (end - start) / 4;
    let mut swaps = 0;
    let (mut low, mut middle, mut high) = (start + quarter, start + 2 * quarter, start + 3 * quarter);
    if end - start >= LONG {
        low = median(entries, [low - 1, low, low + 1], &mut swaps);
        middle = median(entries, [middle - 1, middle, middle + 1], &mut swaps);
        high = median(entries, [high - 1, high, high + 1], &mut swaps);
    }
    let pivot = median(entries, [low, middle, high], &mut swaps);
    let looks = match swaps {
        0 => Looks::Ascending,
        12 => Looks::Descending,
        _ => Looks::Unknown,
    };
    (pivot, looks)
}

fn median(entries: &[Entry], [mut one, mut two, mut three]: [usize; 3], swaps: &mut u32) -> usize {
    let mut order = |one: &mut usize, two: &mut usize| {
        if less(entries, *two, *one) {
            *swaps += 1;
            std::mem::swap(one, two);
        }
    };
    order(&mut one, &mut two);
    order(&mut two, &mut three);
    order(&mut one, &mut two);
    two
}

/// Shifts a few entries that are out of place; whether all are in order then.
fn shift_few(entries: &mut [Entry], start: usize, end: usize) -> bool {
    let mut position = start + 1;
    for _ in 0..SHIFTS_MAX {
        while position < end && !less(entries, position, position - 1) {
            position += 1;
        }
        if position == end {
            return true;
        }
        if end - start < LONG {
            return false;
        }
        entries.swap(position, position - 1);
        if position - start >= 2 {
            sink(entries, position - 1, 0);
        }
        for next in position + 1..end {
            if !less(entries, next, next - 1) {
                break;
            }
            entries.swap(next, next - 1);
        }
    }
    false
}

/// Smaller entries before the pivot, others after it; where it then is, and whether nothing had to move.
fn partition(entries: &mut [Entry], start: usize, end: usize, pivot: usize) -> (usize, bool) {
    entries.swap(start, pivot);
    let (mut low, mut high) = (start + 1, end - 1);
    let mut moved = false;
    loop {
        while low <= high && less(entries, low, start) {
            low += 1;
        }
        while low <= high && !less(entries, high, start) {
            high -= 1;
        }
        if low > high {
            entries.swap(high, start);
            return (high, !moved);
        }
        moved = true;
        entries.swap(low, high);
        low += 1;
        high -= 1;
    }
}

/// Entries equal to the pivot, of which there are none smaller, before greater ones; where those begin.
fn partition_equal(entries: &mut [Entry], start: usize, end: usize, pivot: usize) -> usize {
    entries.swap(start, pivot);
    let (mut low, mut high) = (start + 1, end - 1);
    loop {
        while low <= high && !less(entries, start, low) {
            low += 1;
        }
        while low <= high && less(entries, start, high) {
            high -= 1;
        }
        if low > high {
            return low;
        }
        entries.swap(low, high);
        low += 1;
        high -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap() % end
        }
    }

    fn drawn(numbers: &mut Numbers, count: usize, kinds: usize) -> Vec<Entry> {
        (0..count).map(|host| (numbers.below(kinds), host.into())).collect()
    }

    fn hash(hash: u64, entries: &[Entry]) -> u64 {
        entries.iter().fold(hash, |hash, (_, host)| (hash ^ usize::from(*host) as u64).wrapping_mul(1_099_511_628_211))
    }

    const NOTHING: u64 = 14_695_981_039_346_656_037;

    /// What Go 1.26 made of the same entries.
    #[test]
    fn equals_are_left_as_go_leaves_them() {
        let known = [
            (12, 2, 8_464_910_348_428_136_847_u64),
            (12, 3, 14_860_647_150_120_258_887_u64),
            (12, 7, 16_737_939_246_970_894_851_u64),
            (13, 2, 12_038_637_323_792_709_307_u64),
            (13, 3, 13_607_842_436_124_214_649_u64),
            (13, 7, 1_163_833_261_346_346_337_u64),
            (49, 2, 12_854_130_396_932_348_865_u64),
            (49, 3, 11_992_119_339_452_287_141_u64),
            (49, 7, 12_647_436_410_438_289_505_u64),
            (50, 2, 1_476_086_266_393_987_195_u64),
            (50, 3, 7_137_466_470_586_515_717_u64),
            (50, 7, 11_647_861_798_089_484_793_u64),
            (200, 2, 10_977_793_628_196_777_745_u64),
            (200, 3, 5_589_574_090_363_945_407_u64),
            (200, 7, 1_383_160_984_757_744_923_u64),
            (1000, 2, 1_592_797_787_389_404_309_u64),
            (1000, 3, 3_944_309_925_226_944_279_u64),
            (1000, 7, 8_296_254_030_788_040_035_u64),
        ];
        for (count, kinds, expected) in known {
            let mut numbers = Numbers((count * 10 + kinds) as u64);
            let mut entries = drawn(&mut numbers, count, kinds);
            let mut all = NOTHING;
            for round in 0..20 {
                sort(&mut entries);
                entries[numbers.below(count)].0 += 1 + round % 3;
                if round % 7 == 6 {
                    entries.iter_mut().for_each(|entry| entry.0 = usize::from(entry.1) * 7919 % (kinds + round));
                }
                all = hash(all, &entries);
            }
            assert_eq!(all, expected, "{count} entries of {kinds} kinds");
        }
    }

    #[test]
    fn patterns_are_broken_as_go_breaks_them() {
        let known = [
            (0, 40, 16_864_973_759_985_514_549_u64),
            (0, 300, 10_136_193_964_323_281_529_u64),
            (0, 3000, 9_839_515_759_875_015_285_u64),
            (1, 40, 9_849_962_047_286_772_845_u64),
            (1, 300, 17_516_601_408_213_960_915_u64),
            (1, 3000, 5_793_958_068_698_879_741_u64),
            (2, 40, 7_275_527_075_424_782_573_u64),
            (2, 300, 18_017_001_641_942_063_797_u64),
            (2, 3000, 12_291_433_995_264_810_779_u64),
            (3, 40, 17_369_688_707_597_030_365_u64),
            (3, 300, 16_374_301_781_232_608_807_u64),
            (3, 3000, 4_115_430_823_331_524_887_u64),
        ];
        for (shape, count, expected) in known {
            let value = |host: usize| match shape {
                0 => count - host,
                1 => host.min(count - host),
                2 => host % 5,
                _ => host * host % 11,
            };
            let mut entries: Vec<Entry> = (0..count).map(|host| (value(host), host.into())).collect();
            sort(&mut entries);
            assert_eq!(hash(NOTHING, &entries), expected, "shape {shape}, {count} entries");
        }
    }
}
