//! The ledger of addresses by subnet: what EC2 says is free, less what was launched and EC2 does not count yet, less what the pods of new
//! nodes will take. So a subnet is left out before it is full, and no node comes up whose pods get no address.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::api::network::Subnet;
use crate::api::ec2_node_class::EC2NodeClassSpec;
use crate::ports::is_to_come;

/// An instance that EC2 has not shown after so long was not launched.
const LAUNCH_MAX: SignedDuration = SignedDuration::from_mins(10);
/// The pods of a node have started so long after EC2 showed it, and EC2 counts their addresses.
const PODS_START: SignedDuration = SignedDuration::from_mins(5);
/// What EC2 refused for want of addresses is not tried again before it was asked once more, and not earlier than this.
const EXHAUSTED: SignedDuration = SignedDuration::from_mins(1);
/// Launches under way at once, far beyond what is done.
const LAUNCHES_MAX: usize = 20_000;

/// Addresses of a prefix, which an interface is given as a whole. Source: the EC2 user guide, "Assign prefixes to network interfaces".
const OF_A_PREFIX: u32 = 16;

/// The IPv4 addresses that a new node takes in its subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needed {
    /// Of the instance itself: one for each interface, with the prefixes of it.
    pub instance: u32,
    /// Of the pods that are planned for it; those on the host's network have none.
    pub pods: u32,
}

impl Needed {
    /// Of a node with so many pods. Those of a cluster with IPv6 take none, and neither do those that the node has prefixes for.
    pub fn of(class: Option<&EC2NodeClassSpec>, pods: u32, is_ipv6: bool) -> Self {
        let listed = class.map(|class| class.network_interfaces.as_slice()).unwrap_or_default();
        let have_addresses = listed.iter().filter(|it| it.interface_type.as_deref() != Some("efa-only")).count();
        let interfaces = u32::try_from(have_addresses).unwrap_or(u32::MAX).max(1);
        let prefixes = class.and_then(|class| class.ip_prefix_count).filter(|_| !is_ipv6);
        let prefixes = prefixes.and_then(|count| u32::try_from(count).ok()).unwrap_or_default();
        let of_prefixes = interfaces.saturating_mul(prefixes).saturating_mul(OF_A_PREFIX);
        let pods = if is_ipv6 { 0 } else { pods.saturating_sub(of_prefixes) };
        Self { instance: interfaces.saturating_add(of_prefixes), pods }
    }

    fn all(self) -> u32 {
        self.instance.saturating_add(self.pods)
    }
}

#[derive(Clone, Debug)]
struct Counted {
    zone: String,
    free: u32,
    /// When EC2 was asked.
    asked_at: Timestamp,
    exhausted_at: Option<Timestamp>,
}

#[derive(Clone, Debug)]
struct Launch {
    subnet: String,
    needed: Needed,
    since: Timestamp,
    /// When EC2 showed the instance first.
    shown_at: Option<Timestamp>,
}

/// By launch and part, which makes one call after the other.
pub type Call = (String, u8);

/// What a call may take.
#[derive(Clone, Debug)]
struct Asked {
    /// EC2 chooses among them, and may take all of one.
    subnets: BTreeSet<String>,
    addresses: u32,
    since: Timestamp,
}

/// Free addresses of all subnets.
#[derive(Debug, Default)]
pub struct Addresses {
    subnets: BTreeMap<String, Counted>,
    /// Those whose answers are not known.
    calls: BTreeMap<Call, Asked>,
    /// By the claim that each is for.
    launches: BTreeMap<String, Launch>,
    dropped: u64,
}

/// A subnet with what is free in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubnetRoom {
    pub subnet: String,
    pub zone: String,
    /// As EC2 says it.
    pub free: u32,
    /// What launches under way will take of that.
    pub expected: u32,
}

impl SubnetRoom {
    /// What is left in the end.
    pub fn left(&self) -> u32 {
        self.free.saturating_sub(self.expected)
    }

    /// How many nodes like this it takes.
    pub fn nodes(&self, needed: Needed) -> u32 {
        self.left() / needed.all().max(1)
    }
}

impl Addresses {
    /// EC2 was asked at that moment, and said this. Launches stay in the ledger: it may not count them yet.
    pub fn listed(&mut self, subnets: &[Subnet], asked_at: Timestamp) {
        let mut listed = BTreeMap::new();
        for subnet in subnets {
            let before = self.subnets.get(&subnet.id).and_then(|before| before.exhausted_at);
            let exhausted_at = before.filter(|at| is_within(EXHAUSTED, *at, asked_at));
            let counted = Counted { zone: subnet.zone.clone(), free: subnet.free_addresses, asked_at, exhausted_at };
            listed.insert(subnet.id.clone(), counted);
        }
        self.subnets = listed;
    }

    /// So many nodes are asked for, in any of these subnets: until the answer is there, nobody else has a place for what may go there.
    pub fn asking(&mut self, call: Call, subnets: BTreeSet<String>, needed: Needed, nodes: u32, now: Timestamp) {
        let addresses = needed.all().saturating_mul(nodes);
        self.calls.insert(call, Asked { subnets, addresses, since: now });
    }

    /// It is known what came of a call.
    pub fn answered(&mut self, call: &Call) {
        self.calls.remove(call);
    }

    /// A launch for a claim was sent: with the same claim again, it is the same launch.
    pub fn launching(&mut self, claim: &str, subnet: &str, needed: Needed, now: Timestamp) {
        if self.launches.len() >= LAUNCHES_MAX && !self.launches.contains_key(claim) {
            self.dropped += 1;
            return;
        }
        let launch = Launch { subnet: subnet.to_owned(), needed, since: now, shown_at: None };
        self.launches.insert(claim.to_owned(), launch);
    }

    /// Where the instance really came to be: EC2 chooses among the subnets of a fleet.
    pub fn launched(&mut self, claim: &str, subnet: &str) {
        if let Some(launch) = self.launches.get_mut(claim) {
            subnet.clone_into(&mut launch.subnet);
        }
    }

    /// It was not launched, or has ended.
    pub fn ended(&mut self, claim: &str) {
        self.launches.remove(claim);
    }

    /// EC2 shows the instance: from now on it counts the instance's own addresses, and soon those of its pods.
    pub fn shown(&mut self, claim: &str, now: Timestamp) {
        if let Some(launch) = self.launches.get_mut(claim) {
            launch.shown_at.get_or_insert(now);
        }
    }

    /// EC2 had none left, whatever it said before.
    pub fn exhausted(&mut self, subnet: &str, now: Timestamp) {
        if let Some(counted) = self.subnets.get_mut(subnet) {
            counted.exhausted_at = Some(now);
        }
    }

    /// Forgets launches that are over.
    pub fn sweep(&mut self, now: Timestamp) {
        self.launches.retain(|_, launch| match launch.shown_at {
            Some(shown_at) => is_within(PODS_START, shown_at, now),
            None => is_within(LAUNCH_MAX, launch.since, now),
        });
        self.calls.retain(|_, call| is_within(LAUNCH_MAX, call.since, now));
    }

    /// What is free in a subnet but for calls under way, of which nobody knows where they end; `None` where EC2 was not asked about it.
    pub fn room(&self, subnet: &str) -> Option<SubnetRoom> {
        let counted = self.subnets.get(subnet)?;
        let launches = self.launches.values().filter(|launch| launch.subnet == subnet);
        let expected = launches.map(|launch| not_counted(launch, counted)).fold(0, u32::saturating_add);
        let free = if counted.exhausted_at.is_some() { 0 } else { counted.free };
        Some(SubnetRoom { subnet: subnet.to_owned(), zone: counted.zone.clone(), free, expected })
    }

    /// The same less all that calls under way may take there.
    fn room_beside_calls(&self, subnet: &str) -> Option<SubnetRoom> {
        let room = self.room(subnet)?;
        let calls = self.calls.values().filter(|call| call.subnets.contains(subnet));
        let expected = calls.map(|call| call.addresses).fold(room.expected, u32::saturating_add);
        Some(SubnetRoom { expected, ..room })
    }

    /// The subnet of a zone with most left, if a node fits into it; among equals the first by id.
    pub fn best<'s>(
        &self,
        zone: &str,
        subnets: impl IntoIterator<Item = &'s str>,
        needed: Needed,
    ) -> Option<SubnetRoom> {
        let rooms = subnets.into_iter().filter_map(|subnet| self.room_beside_calls(subnet));
        let rooms = rooms.filter(|room| room.zone == zone);
        let best = rooms.max_by(|one, other| one.left().cmp(&other.left()).then(other.subnet.cmp(&one.subnet)))?;
        (best.left() >= needed.all()).then_some(best)
    }

    /// All subnets, by id.
    pub fn rooms(&self) -> impl Iterator<Item = SubnetRoom> {
        self.subnets.keys().filter_map(|subnet| self.room(subnet))
    }

    /// Launches that were not noted because there were too many.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// Whether so much time has not passed since a moment; by a clock that was set back since then it may have.
fn is_within(wait: SignedDuration, since: Timestamp, now: Timestamp) -> bool {
    now.duration_since(since) < wait && !is_to_come(since, now)
}

/// What of a launch EC2's last answer does not hold.
fn not_counted(launch: &Launch, counted: &Counted) -> u32 {
    match launch.shown_at {
        Some(shown_at) if counted.asked_at >= shown_at => launch.needed.pods,
        Some(_) | None => launch.needed.all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + second).unwrap()
    }

    fn subnet(id: &str, zone: &str, free_addresses: u32) -> Subnet {
        Subnet {
            id: id.to_owned(),
            zone: zone.to_owned(),
            zone_id: None,
            vpc_id: String::new(),
            free_addresses,
            tags: BTreeMap::new(),
        }
    }

    const NODE: Needed = Needed { instance: 1, pods: 29 };

    fn left(addresses: &Addresses, subnet: &str) -> u32 {
        addresses.room(subnet).unwrap().left()
    }

    #[test]
    fn a_node_takes_what_its_interfaces_and_its_pods_do() {
        let of = |spec: serde_json::Value, is_ipv6: bool| {
            let mut class = serde_json::json!({ "amiSelectorTerms": [], "subnetSelectorTerms": [], "securityGroupSelectorTerms": [] });
            class.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
            let Needed { instance, pods } = Needed::of(Some(&serde_json::from_value(class).unwrap()), 20, is_ipv6);
            (instance, pods)
        };
        assert_eq!((Needed::of(None, 20, false).instance, Needed::of(None, 20, false).pods), (1, 20));
        assert_eq!(of(serde_json::json!({}), true), (1, 0));
        assert_eq!(of(serde_json::json!({ "ipPrefixCount": 1 }), false), (17, 4));
        assert_eq!(of(serde_json::json!({ "ipPrefixCount": 2 }), false), (33, 0));
        assert_eq!(of(serde_json::json!({ "ipPrefixCount": 2 }), true), (1, 0));
        let interfaces = serde_json::json!({ "networkInterfaces": [{ "networkCardIndex": 0, "deviceIndex": 0 },
            { "networkCardIndex": 0, "deviceIndex": 1 }, { "networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only" }] });
        assert_eq!(of(interfaces, false), (2, 20));
        let room = SubnetRoom { subnet: String::new(), zone: String::new(), free: 65, expected: 2 };
        assert_eq!(room.nodes(Needed { instance: 1, pods: 20 }), 3);
    }

    #[test]
    fn a_launch_counts_until_ec2_counts_it() {
        let mut addresses = Addresses::default();
        addresses.listed(&[subnet("subnet-a", "a", 100)], at(0));
        addresses.launching("claim", "subnet-a", NODE, at(1));
        assert_eq!(left(&addresses, "subnet-a"), 70);
        // EC2 is asked again before it shows the instance: its figure does not hold it.
        addresses.listed(&[subnet("subnet-a", "a", 100)], at(60));
        assert_eq!(left(&addresses, "subnet-a"), 70);
        addresses.shown("claim", at(70));
        assert_eq!(left(&addresses, "subnet-a"), 70, "the figure is older than that");
        addresses.listed(&[subnet("subnet-a", "a", 99)], at(120));
        assert_eq!(left(&addresses, "subnet-a"), 70, "99 less those of its pods");
        // The pods have started: EC2 counts all of it.
        addresses.sweep(at(70 + 300));
        addresses.listed(&[subnet("subnet-a", "a", 70)], at(380));
        assert_eq!(left(&addresses, "subnet-a"), 70);
    }

    #[test]
    fn a_call_under_way_may_take_all_of_each_of_its_subnets() {
        let mut addresses = Addresses::default();
        addresses.listed(&[subnet("subnet-a", "a", 100), subnet("subnet-b", "b", 100)], at(0));
        let best = |addresses: &Addresses, zone| {
            let best = addresses.best(zone, ["subnet-a", "subnet-b"], NODE);
            best.map(|room| room.nodes(NODE))
        };
        let call = ("launch".to_owned(), 0);
        addresses.asking(call.clone(), ["subnet-a".to_owned()].into(), NODE, 2, at(1));
        assert_eq!((best(&addresses, "a"), best(&addresses, "b")), (Some(1), Some(3)));
        assert_eq!(left(&addresses, "subnet-a"), 100, "a plan does not go by it");
        addresses.asking(call.clone(), ["subnet-a".to_owned(), "subnet-b".to_owned()].into(), NODE, 3, at(2));
        assert_eq!((best(&addresses, "a"), best(&addresses, "b")), (None, None), "the next call of the same part");
        addresses.answered(&call);
        assert_eq!((best(&addresses, "a"), best(&addresses, "b")), (Some(3), Some(3)));
        addresses.asking(call, ["subnet-a".to_owned()].into(), NODE, 3, at(3));
        addresses.sweep(at(603));
        assert_eq!(best(&addresses, "a"), Some(3), "nobody asked for its answer again");
    }

    #[test]
    fn what_was_not_launched_gives_its_addresses_back() {
        let mut addresses = Addresses::default();
        addresses.listed(&[subnet("subnet-a", "a", 100)], at(0));
        addresses.launching("claim", "subnet-a", NODE, at(0));
        addresses.launching("claim", "subnet-a", NODE, at(0));
        assert_eq!(left(&addresses, "subnet-a"), 70, "the same launch");
        addresses.ended("claim");
        assert_eq!(left(&addresses, "subnet-a"), 100);
        addresses.launching("lost", "subnet-a", NODE, at(0));
        addresses.sweep(at(599));
        assert_eq!(left(&addresses, "subnet-a"), 70);
        addresses.sweep(at(600));
        assert_eq!(left(&addresses, "subnet-a"), 100);
    }

    #[test]
    fn the_subnet_with_most_left_is_taken_and_a_zone_without_room_left_out() {
        let mut addresses = Addresses::default();
        let all = [subnet("subnet-1", "a", 100), subnet("subnet-2", "a", 90), subnet("subnet-3", "b", 29)];
        addresses.listed(&all, at(0));
        let ids = ["subnet-1", "subnet-2", "subnet-3", "subnet-unknown"];
        let best = |addresses: &Addresses, zone| addresses.best(zone, ids, NODE).map(|room| room.subnet);
        assert_eq!(best(&addresses, "a").as_deref(), Some("subnet-1"));
        assert_eq!(best(&addresses, "b"), None, "30 are needed");
        addresses.launching("claim", "subnet-1", NODE, at(0));
        assert_eq!(best(&addresses, "a").as_deref(), Some("subnet-2"));
        addresses.launched("claim", "subnet-2");
        assert_eq!(best(&addresses, "a").as_deref(), Some("subnet-1"));
        addresses.listed(&[subnet("subnet-2", "a", 50), subnet("subnet-1", "a", 50)], at(0));
        addresses.ended("claim");
        assert_eq!(best(&addresses, "a").as_deref(), Some("subnet-1"), "the first of equals");
    }

    #[test]
    fn an_exhausted_subnet_has_nothing_until_ec2_was_asked_again() {
        let mut addresses = Addresses::default();
        addresses.listed(&[subnet("subnet-a", "a", 100)], at(0));
        addresses.exhausted("subnet-a", at(1));
        assert_eq!(left(&addresses, "subnet-a"), 0);
        addresses.listed(&[subnet("subnet-a", "a", 100)], at(2));
        assert_eq!(left(&addresses, "subnet-a"), 0, "asked right after");
        addresses.listed(&[subnet("subnet-a", "a", 100)], at(61));
        assert_eq!(left(&addresses, "subnet-a"), 100);
    }

    #[test]
    fn a_clock_that_was_set_back_keeps_no_address() {
        let mut addresses = Addresses::default();
        let listed = [subnet("subnet-a", "a", 100)];
        addresses.listed(&listed, at(3600));
        addresses.launching("claim", "subnet-a", NODE, at(3600));
        addresses.launching("shown", "subnet-a", NODE, at(3600));
        addresses.shown("shown", at(3600));
        addresses.asking(("launch".to_owned(), 0), ["subnet-a".to_owned()].into(), NODE, 1, at(3600));
        addresses.exhausted("subnet-a", at(3600));
        addresses.listed(&listed, at(0));
        addresses.sweep(at(0));
        let best = addresses.best("a", ["subnet-a"], NODE).map(|room| room.left());
        assert_eq!((left(&addresses, "subnet-a"), best), (100, Some(100)));
    }

    #[test]
    fn the_ledger_is_bounded() {
        let mut addresses = Addresses::default();
        addresses.listed(&[subnet("subnet-a", "a", u32::MAX)], at(0));
        for number in 0..LAUNCHES_MAX + 5 {
            addresses.launching(&format!("claim-{number}"), "subnet-a", NODE, at(0));
        }
        assert_eq!((addresses.launches.len(), addresses.dropped()), (LAUNCHES_MAX, 5));
    }
}
