//! Items of nearly one size as one, where there are more of them than a program has rows for.
//!
//! Items that the same bins take are divided by size, where that brings them nearest to each other for the money, until there are as
//! many groups as there may be (after the linear grouping of Fernandez de la Vega and Lueker 1981, in several dimensions). A group that
//! asks for as much as the largest of its items leads to bins on which all of them fit; one that asks for as little as the smallest
//! proves a bound for all of them.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::filling::{Bin, Item};
use super::generation::FilledBin;

/// What a group asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// As much as any of its items, on bins that take all of them.
    OfLargest,
    /// As little as any of its items, on bins that take one of them.
    OfSmallest,
}

/// Items in groups.
pub struct Grouping<'a> {
    items: &'a [Item],
    all_bins: &'a [Bin],
    /// By group: positions of items.
    members: Vec<Vec<usize>>,
    pub groups: Vec<Item>,
    /// In the order of all bins, with what each takes of the groups.
    pub bins: Vec<Bin>,
}

/// Of what is full to the last part, this much is the rounding of the arithmetic.
const ROUNDING: f64 = 1e-9;

impl<'a> Grouping<'a> {
    /// As many groups as there may be at most. `None` where more items than that have no bins in common.
    /// O(items x bins x resources + items x log items x log groups).
    pub fn new(items: &'a [Item], bins: &'a [Bin], groups_max: usize, size: Size) -> Option<Self> {
        let units = units(items, bins);
        let alike = alike(items, bins, groups_max)?.into_iter();
        let mut heap: BinaryHeap<Group> = alike.map(|members| Group::new(items, &units, members)).collect();
        while heap.len() < groups_max && heap.peek().is_some_and(|widest| widest.width > 0.0) {
            let Some(widest) = heap.pop() else { break };
            let (one, other) = widest.divided(items);
            heap.extend([Group::new(items, &units, one), Group::new(items, &units, other)]);
        }
        let mut members: Vec<Vec<usize>> = heap.into_iter().map(|group| group.members).collect();
        members.iter_mut().for_each(|members| members.sort_unstable());
        members.sort_unstable();
        let groups: Vec<Item> = members.iter().map(|members| as_one(items, members, size)).collect();
        let bins_of_groups = bins.iter().map(|bin| bin_of_groups(bin, &members, &groups, size, items.len())).collect();
        Some(Self { items, all_bins: bins, members, groups, bins: bins_of_groups })
    }

    /// By group, the mean of what is known of its items.
    pub fn of_groups(&self, of_items: &[f64]) -> Vec<f64> {
        let weight = |item: &usize| self.items[*item].count.max(f64::MIN_POSITIVE);
        let mean = |members: &Vec<usize>| {
            let sum: f64 = members.iter().map(|item| weight(item) * of_items[*item]).sum();
            sum / members.iter().map(weight).sum::<f64>()
        };
        self.members.iter().map(mean).collect()
    }

    /// By item, what is known of its group.
    pub fn of_items(&self, of_groups: &[f64]) -> Vec<f64> {
        let mut of_items = vec![0.0; self.items.len()];
        for (members, value) in self.members.iter().zip(of_groups) {
            members.iter().for_each(|item| of_items[*item] = *value);
        }
        of_items
    }

    /// Amounts of groups as amounts of their items, each by its part of the group.
    pub fn divided(&self, amounts: &[(usize, f64)]) -> Vec<(usize, f64)> {
        let of_group = |(group, amount): &(usize, f64)| {
            let part = amount / self.groups[*group].count.max(f64::MIN_POSITIVE);
            self.members[*group].iter().map(move |item| (*item, part * self.items[*item].count))
        };
        amounts.iter().flat_map(of_group).collect()
    }

    /// The bins with items on them: each takes those of its groups that are left, no more of one than its bin allows.
    pub fn dealt(&self, filled: Vec<FilledBin>) -> Vec<FilledBin> {
        let mut left: Vec<f64> = self.items.iter().map(|item| item.count).collect();
        let deal = |filled_bin: FilledBin| {
            let most = by_item(&self.all_bins[filled_bin.bin], self.items.len());
            let mut items = Vec::new();
            for (group, mut wanted) in filled_bin.items {
                for item in &self.members[group] {
                    let taken = wanted.min(left[*item]).min(most[*item]);
                    if taken > 0.0 {
                        items.push((*item, taken));
                        left[*item] -= taken;
                        wanted -= taken;
                    }
                }
            }
            FilledBin { bin: filled_bin.bin, items }
        };
        filled.into_iter().map(deal).collect()
    }
}

/// Items that may be one.
struct Group {
    members: Vec<usize>,
    /// What the items would cost more if all were as large as the largest, as far as one resource says it.
    width: f64,
    /// That resource.
    widest: usize,
}

impl Group {
    fn new(items: &[Item], units: &[f64], members: Vec<usize>) -> Self {
        let count: f64 = members.iter().map(|item| items[*item].count).sum();
        let width = |resource: usize| {
            let requests = || members.iter().map(|item| items[*item].request[resource]);
            units[resource] * count * (requests().fold(0.0, f64::max) - requests().fold(f64::INFINITY, f64::min))
        };
        let widest = (0..units.len()).map(|resource| (width(resource), resource));
        // Of equals the first.
        let (width, widest) = widest.reduce(|one, two| if two.0 > one.0 { two } else { one }).unwrap_or((0.0, 0));
        Self { members, width, widest }
    }

    /// In two, so that the two are as narrow as they can be in the resource in which this one is widest.
    fn divided(mut self, items: &[Item]) -> (Vec<usize>, Vec<usize>) {
        let request = |item: usize| items[item].request[self.widest];
        self.members.sort_by(|one, two| request(*one).total_cmp(&request(*two)).then(one.cmp(two)));
        let count: f64 = self.members.iter().map(|item| items[*item].count).sum();
        let (least, most) = (request(self.members[0]), request(self.members[self.members.len() - 1]));
        let mut before = 0.0;
        let mut best = (f64::INFINITY, 1);
        for position in 1..self.members.len() {
            let (last, next) = (self.members[position - 1], self.members[position]);
            before += items[last].count;
            let width = before * (request(last) - least) + (count - before) * (most - request(next));
            if request(last) < request(next) && width < best.0 {
                best = (width, position);
            }
        }
        let others = self.members.split_off(best.1);
        (self.members, others)
    }
}

impl PartialEq for Group {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Group {}

impl PartialOrd for Group {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Group {
    fn cmp(&self, other: &Self) -> Ordering {
        self.width.total_cmp(&other.width).then_with(|| other.members.cmp(&self.members))
    }
}

/// By resource: what one of it costs where it is cheapest.
fn units(items: &[Item], bins: &[Bin]) -> Vec<f64> {
    let resources = items.first().map_or(0, |item| item.request.len());
    let unit = |resource: usize| {
        let with_any = bins.iter().filter(|bin| bin.room[resource] > 0.0);
        with_any.map(|bin| bin.price / bin.room[resource]).fold(f64::INFINITY, f64::min)
    };
    (0..resources).map(unit).map(|unit| if unit.is_finite() { unit } else { 0.0 }).collect()
}

/// What a bin says of an item, its size aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compatibility {
    /// It has no room for one.
    Unknown,
    No,
    Some,
    /// As many as there is room for.
    All,
}

/// Items that no bin tells apart but by size, if these are no more groups than that.
fn alike(items: &[Item], bins: &[Bin], groups_max: usize) -> Option<Vec<Vec<usize>>> {
    let mut compatibilities = vec![vec![Compatibility::Unknown; bins.len()]; items.len()];
    for (position, bin) in bins.iter().enumerate() {
        let most = by_item(bin, items.len());
        for (item, compatibilities) in compatibilities.iter_mut().enumerate() {
            let fit = copies(&items[item].request, &bin.room);
            compatibilities[position] = match most[item] {
                _ if fit < 1.0 => Compatibility::Unknown,
                0.0 => Compatibility::No,
                most if most < fit.min(items[item].count) => Compatibility::Some,
                _ => Compatibility::All,
            };
        }
    }
    // Those that most bins have room for say the most.
    let known = |item: &usize| {
        compatibilities[*item].iter().filter(|compatibility| **compatibility != Compatibility::Unknown).count()
    };
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|item| std::cmp::Reverse(known(item)));
    let mut groups: Vec<(Vec<Compatibility>, Vec<usize>)> = Vec::new();
    for item in order {
        let own = &compatibilities[item];
        let agree = |(one, two): (&Compatibility, &Compatibility)| {
            *one == Compatibility::Unknown || *two == Compatibility::Unknown || one == two
        };
        let Some(group) = groups.iter().position(|(theirs, _)| theirs.iter().zip(own).all(agree)) else {
            if groups.len() == groups_max {
                return None;
            }
            groups.push((own.clone(), vec![item]));
            continue;
        };
        let (theirs, members) = &mut groups[group];
        members.push(item);
        let unknown = theirs.iter_mut().zip(own).filter(|(theirs, _)| **theirs == Compatibility::Unknown);
        unknown.for_each(|(theirs, own)| *theirs = *own);
    }
    Some(groups.into_iter().map(|(_, members)| members).collect())
}

fn as_one(items: &[Item], members: &[usize], size: Size) -> Item {
    let request = |resource: usize| {
        let requests = members.iter().map(|item| items[*item].request[resource]);
        match size {
            Size::OfLargest => requests.fold(0.0, f64::max),
            Size::OfSmallest => requests.fold(f64::INFINITY, f64::min),
        }
    };
    let resources = members.first().map_or(0, |item| items[*item].request.len());
    Item { count: members.iter().map(|item| items[*item].count).sum(), request: (0..resources).map(request).collect() }
}

fn bin_of_groups(bin: &Bin, members: &[Vec<usize>], groups: &[Item], size: Size, items: usize) -> Bin {
    let most = by_item(bin, items);
    let held = members.iter().zip(groups).enumerate().map(|(position, (members, group))| {
        let takes = match size {
            Size::OfLargest => members.iter().all(|item| most[*item] > 0.0),
            Size::OfSmallest => true,
        };
        let sum: f64 = members.iter().map(|item| most[*item]).sum();
        (position, if takes { sum.min(copies(&group.request, &bin.room)) } else { 0.0 })
    });
    Bin { price: bin.price, room: bin.room.clone(), items: held.filter(|(_, most)| *most > 0.0).collect() }
}

/// By item: the most of it in the bin.
fn by_item(bin: &Bin, items: usize) -> Vec<f64> {
    let mut most = vec![0.0; items];
    bin.items.iter().for_each(|(item, count)| most[*item] = *count);
    most
}

/// How many there is room for.
fn copies(request: &[f64], room: &[f64]) -> f64 {
    let ratios = request.iter().zip(room).filter(|(request, _)| **request > 0.0);
    ratios.map(|(request, room)| (room / request + ROUNDING).floor()).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items() -> Vec<Item> {
        let item = |(count, size): (f64, f64)| Item { count, request: vec![size, 1.0] };
        [(5.0, 1.0), (1.0, 1.1), (1.0, 3.0), (2.0, 3.1), (9.0, 1.0)].map(item).to_vec()
    }

    /// The last item is kept out of the second bin, and the second item fits no more than once.
    fn bins() -> Vec<Bin> {
        let bin = |room: f64, items: &[(usize, f64)]| Bin { price: room, room: vec![room; 2], items: items.to_vec() };
        let large = [(0, 5.0), (1, 1.0), (2, 1.0), (3, 2.0), (4, 8.0)];
        vec![bin(8.0, &large), bin(4.0, &[(0, 4.0), (1, 1.0), (2, 1.0), (3, 1.0)])]
    }

    fn grouping<'a>(items: &'a [Item], bins: &'a [Bin], size: Size) -> Grouping<'a> {
        Grouping::new(items, bins, 3, size).unwrap()
    }

    #[test]
    fn what_is_near_in_size_and_compatible_with_the_same_bins_is_one() {
        let (items, bins) = (items(), bins());
        let largest = grouping(&items, &bins, Size::OfLargest);
        assert_eq!(largest.members, [vec![0, 1], vec![2, 3], vec![4]]);
        assert_eq!(largest.groups[0].request, [1.1, 1.0]);
        assert_eq!(largest.bins[1].items, [(0, 3.0), (1, 1.0)], "as the largest of each group");
        let smallest = grouping(&items, &bins, Size::OfSmallest);
        assert_eq!(smallest.groups[0].request, [1.0, 1.0]);
        assert_eq!(smallest.bins[1].items, [(0, 4.0), (1, 1.0)], "as the smallest of each group");
        assert!(Grouping::new(&items, &bins, 1, Size::OfLargest).is_none(), "two are not alike");
    }

    #[test]
    fn bins_take_items_of_their_groups_until_there_are_none_left() {
        let (items, bins) = (items(), bins());
        let filled = vec![
            FilledBin { bin: 0, items: vec![(0, 4.0), (1, 1.0)] },
            FilledBin { bin: 1, items: vec![(0, 3.0)] },
            FilledBin { bin: 0, items: vec![(2, 8.0), (1, 2.0)] },
        ];
        let dealt: Vec<Vec<(usize, f64)>> = grouping(&items, &bins, Size::OfLargest)
            .dealt(filled)
            .into_iter()
            .map(|filled_bin| filled_bin.items)
            .collect();
        assert_eq!(dealt[0], [(0, 4.0), (2, 1.0)]);
        assert_eq!(dealt[1], [(0, 1.0), (1, 1.0)], "one of three is not there");
        assert_eq!(dealt[2], [(4, 8.0), (3, 2.0)]);
    }

    #[test]
    fn amounts_are_divided_as_items_are_many() {
        let (items, bins) = (items(), bins());
        let grouping = grouping(&items, &bins, Size::OfSmallest);
        assert_eq!(grouping.divided(&[(0, 3.0), (2, 9.0)]), [(0, 2.5), (1, 0.5), (4, 9.0)]);
        assert_eq!(grouping.of_items(&[1.0, 2.0, 3.0]), [1.0, 1.0, 2.0, 2.0, 3.0]);
        assert_eq!(grouping.of_groups(&[1.0, 7.0, 2.0, 2.0, 3.0]), [2.0, 2.0, 3.0]);
    }
}
