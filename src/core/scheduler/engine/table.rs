//! Hosts in columns, so that those that can not take a pod are passed over 64 at a time.

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fixedbitset::FixedBitSet;

use crate::model::IndexVec;
use crate::model::index::range;
use crate::scheduler::host::HostIndex;
use crate::scheduler::topology::{Domain, KeyIndex, NO_DOMAIN, OPEN_DOMAIN, set};
use crate::scheduler::vectors::{self, CPU_DIMENSION, MEMORY_DIMENSION};

const WORD: usize = usize::BITS as usize;

/// Looking at all open nodes is worth it when so many have not taken a pod.
const TRIED_ONE_BY_ONE: usize = 16;

/// What is asked of every host that is tried.
#[derive(Clone, Debug)]
pub struct HostTable {
    /// Hosts below this number exist.
    pub first_open: HostIndex,
    dimensions: usize,
    /// By host and dimension: free, or for open nodes more than any of its types has left.
    headroom: Vec<i64>,
    /// By block of hosts: no host has more cores and memory left than this.
    block_room: Vec<Cell<[i64; 2]>>,
    /// By block: whether a host may have less room by now than its block says.
    loose: Vec<Cell<bool>>,
    /// Nodes that exist and take pods.
    accepting: FixedBitSet,
    /// Open nodes that take pods.
    open: FixedBitSet,
    /// The same by how many they have.
    by_pod_count: Vec<FixedBitSet>,
    population: Vec<usize>,
    places: IndexVec<KeyIndex, Places>,
}

/// Hosts by their domain of one topology key.
#[derive(Clone, Debug, Default)]
pub struct Places {
    pub by_domain: Vec<FixedBitSet>,
    /// Open nodes that have not settled.
    pub unsettled: FixedBitSet,
    /// Hosts without the label.
    pub without: FixedBitSet,
}

/// Which hosts topology leaves: in each of some unions, and in none of some sets.
#[derive(Debug, Default)]
pub struct Filter<'e> {
    pub each_of: Vec<Vec<&'e FixedBitSet>>,
    pub none_of: Vec<Cow<'e, FixedBitSet>>,
}

impl Filter<'_> {
    fn leaves(&self, host: HostIndex) -> bool {
        self.none_of.iter().all(|excluded| !excluded.contains(host.into()))
            && self.each_of.iter().all(|union| union.iter().any(|set| set.contains(host.into())))
    }

    fn word(&self, position: usize) -> usize {
        let mut hosts = usize::MAX;
        for excluded in &self.none_of {
            hosts &= !word(excluded, position);
        }
        for union in &self.each_of {
            hosts &= union.iter().fold(0, |hosts, set| hosts | word(set, position));
        }
        hosts
    }
}

fn word(set: &FixedBitSet, position: usize) -> usize {
    set.as_slice().get(position).copied().unwrap_or(0)
}

/// The word that a host is in.
fn block_of(host: HostIndex) -> usize {
    usize::from(host) / WORD
}

/// The word's bits from `first` on.
fn from(position: usize, first: HostIndex) -> usize {
    match usize::from(first).saturating_sub(position * WORD) {
        0 => usize::MAX,
        below if below < WORD => usize::MAX << below,
        _ => 0,
    }
}

impl HostTable {
    pub fn new(first_open: HostIndex, dimensions: usize, keys: usize) -> Self {
        Self {
            first_open,
            dimensions,
            headroom: Vec::new(),
            block_room: Vec::new(),
            loose: Vec::new(),
            accepting: FixedBitSet::with_capacity(first_open.into()),
            open: FixedBitSet::new(),
            by_pod_count: Vec::new(),
            population: Vec::new(),
            places: IndexVec::repeat(Places::default(), keys),
        }
    }

    pub fn headroom(&self, host: HostIndex) -> &[i64] {
        &self.headroom[usize::from(host) * self.dimensions..][..self.dimensions]
    }

    /// Adds a host, which takes no pods yet.
    pub fn push(&mut self, headroom: impl Iterator<Item = i64>) {
        let host = HostIndex::from(self.headroom.len() / self.dimensions.max(1));
        self.headroom.extend(headroom);
        if block_of(host) >= self.block_room.len() {
            self.block_room.push(Cell::new([i64::MIN; 2]));
            self.loose.push(Cell::new(false));
        }
        self.changed(host);
    }

    pub fn set_headroom(&mut self, host: HostIndex, headroom: impl Iterator<Item = i64>) {
        let start = usize::from(host) * self.dimensions;
        self.headroom[start..start + self.dimensions].iter_mut().zip(headroom).for_each(|(room, now)| *room = now);
        self.changed(host);
    }

    pub fn add_headroom(&mut self, host: HostIndex, amounts: &[i64], times: i64) {
        let start = usize::from(host) * self.dimensions;
        vectors::add(&mut self.headroom[start..start + self.dimensions], amounts, times);
        self.changed(host);
    }

    fn changed(&self, host: HostIndex) {
        let room = self.headroom(host);
        let block = &self.block_room[block_of(host)];
        let [cores, memory] = block.get();
        block.set([cores.max(room[CPU_DIMENSION]), memory.max(room[MEMORY_DIMENSION])]);
        self.loose[block_of(host)].set(true);
    }

    /// Forgets hosts from `first` on; they must take no pods and be in no place any more.
    pub fn truncate(&mut self, first: HostIndex) {
        self.headroom.truncate(usize::from(first) * self.dimensions);
        let blocks = usize::from(first).div_ceil(WORD);
        self.block_room.truncate(blocks);
        self.loose.truncate(blocks);
        self.loose.iter().skip(block_of(first)).for_each(|loose| loose.set(true));
    }

    /// Whether a node that exists takes pods.
    pub fn set_accepting(&mut self, host: HostIndex, accepts: bool) {
        set(&mut self.accepting, host.into(), accepts);
    }

    /// Counts an open node among those that take pods, or no longer.
    pub fn set_open(&mut self, host: HostIndex, pods: usize, takes_pods: bool) {
        if pods >= self.by_pod_count.len() {
            self.by_pod_count.resize(pods + 1, FixedBitSet::new());
            self.population.resize(pods + 1, 0);
        }
        set(&mut self.open, host.into(), takes_pods);
        if self.by_pod_count[pods].contains(host.into()) != takes_pods {
            self.population[pods] =
                if takes_pods { self.population[pods] + 1 } else { self.population[pods].saturating_sub(1) };
            set(&mut self.by_pod_count[pods], host.into(), takes_pods);
        }
    }

    pub fn places(&self, key: KeyIndex) -> &Places {
        &self.places[key]
    }

    pub fn set_place(&mut self, host: HostIndex, key: KeyIndex, domain: Domain, is_there: bool) {
        let places = &mut self.places[key];
        match domain {
            NO_DOMAIN => set(&mut places.without, host.into(), is_there),
            OPEN_DOMAIN => set(&mut places.unsettled, host.into(), is_there),
            domain => {
                let domain = domain.position();
                if domain >= places.by_domain.len() {
                    places.by_domain.resize(domain + 1, FixedBitSet::new());
                }
                set(&mut places.by_domain[domain], host.into(), is_there);
            }
        }
    }

    /// The first node that exists, from `first` on, that takes pods, has the headroom and is accepted.
    pub fn find_existing(
        &self,
        first: HostIndex,
        request: &[i64],
        filter: &Filter<'_>,
        among: Option<&FixedBitSet>,
        accept: impl Fn(HostIndex) -> bool,
    ) -> Option<HostIndex> {
        for position in block_of(first)..usize::from(self.first_open).div_ceil(WORD) {
            let hosts = word(&self.accepting, position) & from(position, first);
            let hosts = hosts & among.map_or(usize::MAX, |among| word(among, position));
            if hosts == 0 || !self.may_fit(position, request) {
                continue;
            }
            let found = Self::hosts_of(position, hosts & filter.word(position))
                .find(|host| vectors::fits(request, self.headroom(*host)) && accept(*host));
            match found {
                Some(host) => return Some(host),
                None => self.tighten(position),
            }
        }
        None
    }

    /// The first open node, from `first` on, fewest pods first, for which `accept` has something to say.
    pub fn find_open<T>(
        &self,
        first: HostIndex,
        request: &[i64],
        filter: &Filter<'_>,
        accept: impl Fn(HostIndex) -> Option<T>,
    ) -> Option<(HostIndex, T)> {
        let first = first.max(self.first_open);
        let buckets = self.by_pod_count.iter().zip(&self.population).filter(|(_, population)| **population > 0);
        for (bucket, _) in buckets {
            for position in block_of(first)..bucket.as_slice().len() {
                let hosts = word(bucket, position) & from(position, first);
                if hosts == 0 || !self.may_fit(position, request) {
                    continue;
                }
                let mut tried = Self::hosts_of(position, hosts & filter.word(position));
                if let Some(found) = tried.find_map(|host| Some((host, accept(host)?))) {
                    return Some(found);
                }
                self.tighten(position);
            }
        }
        None
    }

    /// The first open node in an order for which `accept` has something to say. Of the first few it is asked whether they have
    /// the headroom and are left, one by one; where none of them takes the pod, all of them are, 64 at a time.
    pub fn find_open_in_order<T, P: Ord>(
        &self,
        mut order: impl Iterator<Item = HostIndex>,
        place: impl Fn(HostIndex) -> P,
        request: &[i64],
        filter: &Filter<'_>,
        accept: impl Fn(HostIndex) -> Option<T>,
    ) -> Option<(HostIndex, T)> {
        let is_left = |host: HostIndex| {
            self.open.contains(host.into()) && vectors::fits(request, self.headroom(host)) && filter.leaves(host)
        };
        let mut first = order.by_ref().take(TRIED_ONE_BY_ONE).filter(|host| is_left(*host));
        let found = first.find_map(|host| Some((host, accept(host)?)));
        if found.is_some() {
            return found;
        }
        let tried = ..place(order.next()?);
        let left = self.open_with_room(request, filter).into_iter().map(|host| Reverse((place(host), host)));
        let mut left: BinaryHeap<_> = left.filter(|Reverse((place, _))| !tried.contains(place)).collect();
        std::iter::from_fn(|| left.pop()).find_map(|Reverse((_, host))| Some((host, accept(host)?)))
    }

    /// O(open nodes / 64 x sets of the filter + those that it leaves).
    fn open_with_room(&self, request: &[i64], filter: &Filter<'_>) -> Vec<HostIndex> {
        let mut roomy: Vec<HostIndex> = Vec::new();
        for position in block_of(self.first_open)..self.open.as_slice().len() {
            let hosts = word(&self.open, position);
            if hosts == 0 || !self.may_fit(position, request) {
                continue;
            }
            let before = roomy.len();
            let hosts = Self::hosts_of(position, hosts & filter.word(position));
            roomy.extend(hosts.filter(|host| vectors::fits(request, self.headroom(*host))));
            if roomy.len() == before {
                self.tighten(position);
            }
        }
        roomy
    }

    fn hosts_of(position: usize, mut hosts: usize) -> impl Iterator<Item = HostIndex> {
        std::iter::from_fn(move || {
            let bit = hosts.trailing_zeros() as usize;
            hosts &= hosts.wrapping_sub(1);
            (bit < WORD).then_some(HostIndex::from(position * WORD + bit))
        })
    }

    fn may_fit(&self, position: usize, request: &[i64]) -> bool {
        let [cores, memory] = self.block_room[position].get();
        let fits = |asked: i64, room: i64| asked <= 0 || asked <= room;
        fits(request[CPU_DIMENSION], cores) && fits(request[MEMORY_DIMENSION], memory)
    }

    /// Looks at what the hosts of a block really have left. O(hosts of a block), and only after one has changed.
    fn tighten(&self, position: usize) {
        if !self.loose[position].replace(false) {
            return;
        }
        let first = position * WORD;
        let end = (first + WORD).min(self.headroom.len() / self.dimensions);
        let hosts = range(HostIndex::from(first), HostIndex::from(end));
        let most = hosts.fold([i64::MIN; 2], |[cores, memory], host| {
            let room = self.headroom(host);
            [cores.max(room[CPU_DIMENSION]), memory.max(room[MEMORY_DIMENSION])]
        });
        self.block_room[position].set(most);
    }
}

#[cfg(test)]
impl HostTable {
    /// Everything that can be seen from outside; how much has been allocated can not.
    pub fn state(&self) -> String {
        let hosts = |set: &FixedBitSet| set.ones().collect::<Vec<_>>();
        let lists = |sets: &[FixedBitSet]| {
            let mut lists: Vec<_> = sets.iter().map(hosts).collect();
            while lists.last().is_some_and(Vec::is_empty) {
                lists.pop();
            }
            lists
        };
        let places = self.places.iter();
        let places: Vec<_> =
            places.map(|it| (lists(&it.by_domain), hosts(&it.unsettled), hosts(&it.without))).collect();
        format!("{:?} {:?} {:?} {places:?}", self.headroom, hosts(&self.accepting), lists(&self.by_pod_count))
    }
}
