//! What each pool may buy, and at which price: the catalog as node classes, overlays, refusals and gates leave it.

mod adjustment;
pub mod image_lock;
mod images;
mod nothing;
mod of_class;
mod overlays;
mod quotas;
mod readiness;
mod refused;
mod reservations;
mod subnets;
mod without_image;

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::catalog::node_class::NodeClassSettings;
use crate::catalog::{InstanceType, NodeCosts};
use crate::inputs::Inputs;
pub use crate::inputs::RefusedOffering;
use crate::lifecycle::early_ends::{self, Breaker};
use crate::model::HourlyPrice;
use crate::plan::{Note, ReasonCode};
use crate::snapshot::nodes::Machine;
use cutlist_api::ec2_node_class::EC2NodeClass;
use cutlist_api::keys;
use cutlist_api::node_pool::{NodeClassReference, NodePool};

pub use images::Images;
pub use nothing::{NothingOffered, named_types};
use of_class::OfClass;
pub use overlays::OverlaidOffer;
use overlays::Overlays;
use quotas::Quotas;
pub use quotas::{Coming, coming, pools_short_of_quota, quota_in_its_way};
pub use readiness::NotReady;
use refused::Refusals;
pub use refused::{REFUSED_SECONDS, taken_back};
pub use reservations::Reservation;
use reservations::Reservations;
pub use subnets::Subnets;

/// The instance types of one pool, in the order of the catalog.
pub type Types = Rc<Vec<InstanceType>>;

/// The offer of all pools.
#[derive(Debug)]
pub struct Offer {
    /// By position of the pool in the inputs; `None` without a node class. Pools of one class share theirs where no
    /// overlay tells them apart.
    pools: Vec<Option<Types>>,
    /// Pools whose prices or capacities an overlay changes, by name: their types, which count for nodes that exist too.
    overlaid: BTreeMap<String, Types>,
    /// By position of the pool in the inputs: the zones in which it can launch nodes, where that is known.
    zones: Vec<Option<Vec<String>>>,
    /// By position of the pool in the inputs.
    reserved: Vec<Vec<Reserved>>,
    reservations: Vec<Rc<Reservation>>,
    /// By EC2NodeClass, what a node of it costs beside its instance.
    costs_of_class: BTreeMap<String, NodeCosts>,
    of_class: BTreeMap<String, OfClass>,
    left_out: Vec<LeftOut>,
    /// How many nodes of a pool may be on their way, and why, where instances of it end early.
    paused: BTreeMap<String, Paused>,
    notes: Vec<Note>,
}

/// A pool that can launch nothing, whatever it asks for.
#[derive(Debug)]
pub struct LeftOut {
    pub node_pool: String,
    pub code: ReasonCode,
    pub text: String,
}

impl LeftOut {
    fn of(inputs: &Inputs<'_>, pool: &NodePool) -> Self {
        let node_pool = pool.metadata.name.clone().unwrap_or_default();
        let class = &pool.spec.template.spec.node_class_ref;
        if class.is_of_auto_mode() {
            let text = "EKS Auto Mode makes its nodes, no plan does".to_owned();
            return Self { node_pool, code: ReasonCode::NodePoolOfAutoMode, text };
        }
        if class.is_of_others() {
            let text = format!("what looks after each {} makes its nodes, no plan does", class.kind);
            return Self { node_pool, code: ReasonCode::NodePoolOfAnotherProvider, text };
        }
        let text = format!("its {}", inputs.why_no_class(&class.name));
        Self { node_pool, code: ReasonCode::NodeClassMissing, text }
    }

    fn not_ready(pool: &NodePool, not_ready: &NotReady<'_>) -> Self {
        let node_pool = pool.metadata.name.clone().unwrap_or_default();
        Self { node_pool, code: ReasonCode::NodePoolNotReady, text: not_ready.to_string() }
    }

    fn not_locked(pool: &NodePool) -> Self {
        let class = &pool.spec.template.spec.node_class_ref.name;
        let text = format!(
            "cutlist.lock has no images for its EC2NodeClass {class} as it is now, and spec.images.requireLock of \
             cutlist.yaml asks for them: `cutlist ami lock` writes them"
        );
        Self { node_pool: pool.metadata.name.clone().unwrap_or_default(), code: ReasonCode::ImagesNotLocked, text }
    }
}

/// Pools that are defined, and that no plan is made with for want of the values of their variables.
fn unplanned_pools(inputs: &Inputs<'_>) -> impl Iterator<Item = LeftOut> {
    let is_planned = |name: &str| inputs.node_pools.iter().any(|pool| pool.metadata.name.as_deref() == Some(name));
    inputs.unplanned("NodePool").filter(move |(name, _)| !is_planned(name)).map(|(name, why)| {
        let text = why.predicate.as_ref().unwrap_or(&why.text).clone();
        LeftOut { node_pool: name.to_owned(), code: ReasonCode::UnknownNodePool, text }
    })
}

/// That few nodes of a pool are launched, or none, because the last instances ended before their nodes joined.
#[derive(Debug)]
pub struct Paused {
    /// So many may be on their way.
    pub nodes: i64,
    pub why: String,
}

/// A reservation as one pool can use it.
#[derive(Debug)]
pub struct Reserved {
    pub reservation: Rc<Reservation>,
    /// Its type, in its zone.
    pub types: Types,
}

impl Offer {
    /// `before`: one of the same catalog; what it has for a class is taken where it would be made again.
    /// O(node classes x types + pools + overlays x pools x offerings).
    pub fn new(inputs: &Inputs<'_>, before: Option<&Self>) -> Self {
        let (refusals, quotas) = (Rc::new(Refusals::new(inputs)), Rc::new(Quotas::new(inputs)));
        let overlays = Overlays::new(inputs);
        let reservations = Reservations::new(inputs);
        let mut offer = Self {
            pools: Vec::new(),
            overlaid: BTreeMap::new(),
            zones: Vec::new(),
            reserved: Vec::new(),
            reservations: reservations.all(),
            costs_of_class: costs_of_class(inputs),
            of_class: BTreeMap::new(),
            left_out: Vec::new(),
            paused: BTreeMap::new(),
            notes: refusals.notes(inputs.now),
        };
        offer.notes.extend(overlays.notes.iter().cloned());
        offer.notes.extend(reservations.notes.iter().cloned());
        offer.notes.extend(without_image::notes(inputs));
        offer.left_out.extend(unplanned_pools(inputs));
        for (position, pool) in inputs.node_pools.iter().enumerate() {
            let name = pool.spec.template.spec.node_class_ref.name.as_str();
            let class = offer.usable_class(inputs, pool);
            offer.look_at_early_ends(inputs, pool);
            let types = class.map(|class| {
                let known = before.and_then(|before| before.of_class.get(name));
                let of_class = offer.of_class.entry(name.to_owned());
                Rc::clone(&of_class.or_insert_with(|| OfClass::new(inputs, class, (&refusals, &quotas), known)).types)
            });
            let types = types.map(|types| {
                if !overlays.change(position) {
                    return types;
                }
                let mut own = Vec::clone(&types);
                overlays.change_types(position, &mut own);
                let own = Rc::new(own);
                offer.overlaid.insert(pool.metadata.name.clone().unwrap_or_default(), Rc::clone(&own));
                own
            });
            let reserved = class.zip(types.as_ref()).map(|(class, types)| {
                let settings = NodeClassSettings::read(&class.spec).0;
                let usable = reservations.of_class(name).iter();
                let has_image = |it: &&Rc<Reservation>| !offer.lacks_image(name, &it.instance_type);
                let usable = usable.filter(has_image);
                usable.filter_map(|it| reserved(it, types, &settings, &refusals, inputs)).collect()
            });
            offer.reserved.push(reserved.unwrap_or_default());
            offer.zones.push(class.and_then(|class| Subnets::of(inputs, class).zones()));
            offer.pools.push(types);
        }
        offer
    }

    /// The class of a pool, if nodes can be made of it; else it is noted why none can.
    fn usable_class<'i>(&mut self, inputs: &Inputs<'i>, pool: &'i NodePool) -> Option<&'i EC2NodeClass> {
        let reference = &pool.spec.template.spec.node_class_ref;
        let is_ours = !reference.is_of_others();
        let mut classes = inputs.node_classes.iter().filter(|_| is_ours);
        let Some(class) = classes.find(|class| class.metadata.name.as_ref() == Some(&reference.name)) else {
            self.left_out.push(LeftOut::of(inputs, pool));
            return None;
        };
        if inputs.policy.images.is_missing(&reference.name) {
            self.left_out.push(LeftOut::not_locked(pool));
            return None;
        }
        if let Some(not_ready) = NotReady::of_pool(inputs, pool, class) {
            self.left_out.push(LeftOut::not_ready(pool, &not_ready));
            return None;
        }
        Some(class)
    }

    fn look_at_early_ends(&mut self, inputs: &Inputs<'_>, pool: &NodePool) {
        let Some(ends) = early_ends::of_pool(inputs, pool) else { return };
        let (nodes, then) = match ends.breaker(inputs.now) {
            Breaker::Closed => return,
            Breaker::Open(next) => (0, format!("none is launched before {next}")),
            Breaker::OneAlone => (1, "one is launched alone until it has joined".to_owned()),
        };
        let why = format!("{}; {then}", ends.text());
        self.paused.insert(pool.metadata.name.clone().unwrap_or_default(), Paused { nodes, why });
    }

    /// What early ends of its instances leave of a pool; `None` where any number of nodes may be launched.
    pub fn paused(&self, node_pool: &str) -> Option<&Paused> {
        self.paused.get(node_pool)
    }

    /// The zones in which the pool at this position of the inputs can launch nodes; `None`: in any.
    pub fn zones_of_pool(&self, pool: usize) -> Option<&[String]> {
        self.zones.get(pool)?.as_deref()
    }

    /// Whether the class of a name has images, and none of them is for the instance type.
    pub fn lacks_image(&self, node_class: &str, instance_type: &str) -> bool {
        self.of_class.get(node_class).is_some_and(|it| it.lacking.contains(instance_type))
    }

    /// The reservations that nodes of the pool at this position of the inputs can be launched into.
    pub fn reserved_of_pool(&self, pool: usize) -> &[Reserved] {
        self.reserved.get(pool).map(Vec::as_slice).unwrap_or_default()
    }

    /// Those of all classes, by id.
    pub fn reservations(&self) -> &[Rc<Reservation>] {
        &self.reservations
    }

    /// What the pool at this position of the inputs may buy; `None` without its node class, since it can launch nothing.
    pub fn of_pool(&self, pool: usize) -> Option<&Types> {
        self.pools.get(pool)?.as_ref()
    }

    /// What a machine costs, by the catalog and the overlays for its pool; `None` when its type, zone or capacity type is
    /// not on offer.
    pub fn price_of(&self, inputs: &Inputs<'_>, machine: &Machine<'_>) -> Option<HourlyPrice> {
        let name = machine.label(keys::INSTANCE_TYPE)?;
        let zone = machine.label(keys::ZONE)?;
        let capacity_type = machine.label(keys::CAPACITY_TYPE).unwrap_or(keys::ON_DEMAND);
        if capacity_type == keys::RESERVED {
            let (_, on_demand) = reservations::on_demand(inputs.catalog, name, zone)?;
            return Some(reservations::reserved_price(on_demand.price));
        }
        let overlaid = machine.node_pool().and_then(|pool| self.overlaid.get(pool));
        let types = overlaid.map_or(&inputs.catalog.instance_types, |types| types.as_ref());
        // Catalogs are sorted by name where they are read; one made otherwise is searched.
        let sorted = types.binary_search_by(|instance_type| instance_type.name.as_str().cmp(name)).ok();
        let position = sorted.or_else(|| types.iter().position(|instance_type| instance_type.name == name))?;
        let mut offerings = types[position].offerings.iter();
        let offering = offerings.find(|it| it.zone == zone && it.capacity_type == capacity_type)?;
        Some(offering.price)
    }

    /// What a new node of the pool costs beside its instance; nothing where its class is not known.
    pub fn costs_of_pool(&self, pool: &NodePool) -> NodeCosts {
        self.costs_of(&pool.spec.template.spec.node_class_ref)
    }

    /// What a machine costs beside its instance, by what its class says now; nothing where nobody knows its class.
    pub fn costs_of_machine(&self, inputs: &Inputs<'_>, machine: &Machine<'_>) -> NodeCosts {
        let of_claim = machine.claim.map(|claim| &claim.spec.node_class_ref);
        let of_pool = || {
            let name = machine.node_pool()?;
            let mut pools = inputs.node_pools.iter();
            let pool = pools.find(|pool| pool.metadata.name.as_deref() == Some(name))?;
            Some(&pool.spec.template.spec.node_class_ref)
        };
        of_claim.or_else(of_pool).map(|class| self.costs_of(class)).unwrap_or_default()
    }

    fn costs_of(&self, class: &NodeClassReference) -> NodeCosts {
        let of_class = self.costs_of_class.get(&class.name).filter(|_| !class.is_of_others());
        of_class.copied().unwrap_or_default()
    }

    /// Pools without a class that this can use.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// What the reader should know of it.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }
}

fn costs_of_class(inputs: &Inputs<'_>) -> BTreeMap<String, NodeCosts> {
    let named = |class: &EC2NodeClass| Some((class.metadata.name.clone()?, NodeCosts::of_class(&class.spec)));
    // Of several of one name the first counts, as for everything else.
    inputs.node_classes.iter().rev().filter_map(named).collect()
}

/// The type of a reservation as nodes of the class and the pool have it; `None` when none can be launched.
fn reserved(
    reservation: &Rc<Reservation>,
    of_pool: &Types,
    settings: &NodeClassSettings,
    refusals: &Refusals,
    inputs: &Inputs<'_>,
) -> Option<Reserved> {
    let (sold, on_demand) = reservations::on_demand(inputs.catalog, &reservation.instance_type, &reservation.zone)?;
    // Whether the class can have it does not depend on what is left of it on demand.
    let mut launched = [settings.apply(&reservations::offered(reservation, sold, on_demand.zone_id.clone()))];
    refusals.leave_out(&mut launched);
    if !launched.iter().flat_map(|it| &it.offerings).any(|offering| offering.available) {
        return None;
    }
    let of_pool = of_pool.iter().find(|it| it.name == reservation.instance_type)?;
    let mut of_zone = of_pool.offerings.iter().filter(|offering| offering.zone == reservation.zone);
    let zone_id = of_zone.find_map(|offering| offering.zone_id.clone()).or_else(|| on_demand.zone_id.clone());
    let types = Rc::new(vec![reservations::offered(reservation, of_pool, zone_id)]);
    Some(Reserved { reservation: Rc::clone(reservation), types })
}
