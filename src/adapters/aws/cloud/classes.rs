//! What is known of every EC2NodeClass: what its selectors find, whether its nodes could be launched, and what they are launched with.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Mutex;

use crate::adapters::aws::addresses::Addresses;
use crate::adapters::aws::api::launch::{FleetRequest, RunRequest};
use crate::adapters::aws::api::network::Subnet;
use crate::adapters::aws::api::{ApiError, Ec2Api};
use crate::adapters::aws::failures::FailureClass;
use crate::adapters::aws::fleet::{LaunchPart, Order, Surroundings, requests};
use crate::adapters::aws::launch_templates::{LaunchSpecification, Resolved, group, tags};
use crate::adapters::aws::resolution::cluster::{Identity, dns_address, service_cidr};
use crate::adapters::aws::resolution::instance_profile::{self, Wanted};
use crate::adapters::aws::resolution::status::status;
use crate::adapters::aws::resolution::validation::{DryRuns, Validator, Verdict, look, of_template};
use crate::adapters::aws::resolution::{Resolution, Resolver, port};
use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::keys;
use crate::core::catalog::node_class::image_for;
use crate::core::catalog::user_data;
use crate::core::catalog::{InstanceType, NodeClassSettings};
use crate::ports::{ClassFacts, Offering, not_to_come};

use super::templates;

/// A class that nobody has asked about for so long is gone.
const FORGOTTEN_AFTER: SignedDuration = SignedDuration::from_mins(15);
/// Under this name of a NodePool the permission to launch is tried: the policy asks for the tag.
pub const TRIED_FOR: &str = "permission-check";

/// All classes.
#[derive(Debug)]
pub struct Classes {
    identity: Identity,
    /// Whether anything may be made: an instance profile, a launch template.
    may_write: bool,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    resolver: Resolver,
    validator: Validator,
    /// By name, with the status that follows from what is known, and when it was asked about last.
    seen: BTreeMap<String, (EC2NodeClass, Timestamp)>,
}

/// A class with all that a launch needs of it.
#[derive(Clone, Debug)]
pub struct Described {
    /// With its status.
    pub class: EC2NodeClass,
    pub facts: Resolution,
}

impl Classes {
    pub fn new(identity: Identity, may_write: bool) -> Self {
        let resolver = Resolver::new(identity.clone());
        let inner = Inner { resolver, validator: Validator::default(), seen: BTreeMap::new() };
        Self { identity, may_write, inner: Mutex::new(inner) }
    }

    /// Asks what is due, for all classes that are known, and says what that means for this one. `types`: the catalog's.
    pub async fn describe(
        &self,
        api: &impl Ec2Api,
        class: &EC2NodeClass,
        types: &[InstanceType],
        addresses: &std::sync::Mutex<Addresses>,
        now: Timestamp,
    ) -> ClassFacts {
        let mut inner = self.inner.lock().await;
        let class = inner.see(class, now);
        let name = class.metadata.name.clone().unwrap_or_default();
        let classes: Vec<EC2NodeClass> = inner.seen.values().map(|(class, _)| class.clone()).collect();
        inner.resolver.refresh(api, &classes, self.may_write, now).await;
        let facts = inner.resolver.facts(&class, now);
        let unknown = Verdict::Unknown { why: "what would be launched is not known yet".to_owned() };
        let resolved = EC2NodeClass { status: Some(status(&class, &facts, &unknown, now)), ..class.clone() };
        let verdict = match self.dry_runs(&resolved, &facts, types) {
            Err(fault) => look(&class.spec, &facts).unwrap_or(fault),
            Ok(runs) if self.may_write => inner.validator.validate(api, &class, &facts, runs.as_ref(), now).await,
            Ok(_) => {
                let why = "it is tried by who launches, and this one only observes".to_owned();
                look(&class.spec, &facts).unwrap_or(Verdict::Unknown { why })
            }
        };
        let status = status(&class, &facts, &verdict, now);
        let mut addresses = addresses.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((subnets, asked_at)) = inner.resolver.listed_subnets() {
            addresses.listed(subnets, asked_at);
        }
        addresses.sweep(now);
        let said = port::to_port(&status, &facts, &addresses);
        inner.seen.insert(name, (EC2NodeClass { status: Some(status), ..class }, now));
        said
    }

    /// The class as it was described last; where that was another spec, or never, as it is given.
    pub async fn described(&self, class: &EC2NodeClass, now: Timestamp) -> Described {
        let inner = self.inner.lock().await;
        let name = class.metadata.name.as_deref().unwrap_or_default();
        let known = inner.seen.get(name).map(|(known, _)| known).filter(|known| known.spec == class.spec);
        let class = known.unwrap_or(class).clone();
        let facts = inner.resolver.facts(&class, now);
        Described { class, facts }
    }

    /// What was launched into capacity reservations, by its id and theirs.
    pub async fn launched(&self, reserved: impl Iterator<Item = (&str, &str)>, now: Timestamp) {
        let mut inner = self.inner.lock().await;
        reserved.for_each(|(instance, reservation)| inner.resolver.launched_into(reservation, instance, now));
    }

    /// By class that has been asked about lately, the name of the profile that it wants.
    pub async fn wanted_profiles(&self, now: Timestamp) -> BTreeMap<String, String> {
        let inner = self.inner.lock().await;
        let name = |class: &EC2NodeClass| match instance_profile::wanted(&self.identity, class) {
            Wanted::Managed(managed) => Some(managed.profile.name),
            Wanted::Named(name) => Some(name),
            Wanted::Nothing => None,
        };
        let lately = inner.seen.iter().filter(|(_, (_, at))| now.duration_since(*at) < FORGOTTEN_AFTER);
        lately.filter_map(|(of, (class, _))| Some((of.clone(), name(class)?))).collect()
    }

    /// What went wrong with asking, for people, each once. What is denied is said apart.
    pub async fn troubles(&self) -> Vec<String> {
        let inner = self.inner.lock().await;
        let errors = inner.resolver.troubles().into_iter().map(|(_, trouble)| &trouble.error);
        errors.filter(|error| error.class != FailureClass::Denied).map(ApiError::text).collect()
    }

    /// One instance of the first type that will do, in each subnet, to be tried without launching it; nothing while it is not known what
    /// would be launched. An error: nothing could be, whatever EC2 says.
    fn dry_runs(
        &self,
        class: &EC2NodeClass,
        facts: &Resolution,
        types: &[InstanceType],
    ) -> Result<Option<DryRuns>, Verdict> {
        let Some(cluster) = cluster(&self.identity, facts) else { return Ok(None) };
        let Some(subnets) = facts.subnets.value() else { return Ok(None) };
        let resolved = Resolved::of(class, &cluster, &self.identity.region);
        let settings = NodeClassSettings::read(&class.spec).0;
        let labels = BTreeMap::from([(keys::NODE_POOL.to_owned(), TRIED_FOR.to_owned())]);
        let runs_on = |instance_type: &&InstanceType| {
            image_for(&settings.apply(instance_type), &labels, resolved.images).is_some()
        };
        let is_sold = |instance_type: &&InstanceType| {
            let zones = instance_type.offerings.iter().filter(|it| it.capacity_type == keys::ON_DEMAND);
            zones.into_iter().any(|it| subnets.iter().any(|subnet| subnet.zone == it.zone))
        };
        let Some(chosen) = types.iter().filter(is_sold).find(runs_on) else { return Ok(None) };
        let zone = |subnet: &&Subnet| {
            chosen.offerings.iter().any(|it| it.zone == subnet.zone && it.capacity_type == keys::ON_DEMAND)
        };
        let of_zone: BTreeMap<String, String> =
            subnets.iter().rev().filter(zone).map(|subnet| (subnet.zone.clone(), subnet.id.clone())).collect();
        let specification = self.specification_of_nobody(class, chosen, of_zone.keys(), labels);
        let owner = tags::Owner {
            cluster: &self.identity.cluster,
            installation: &self.identity.installation,
            node_pool: TRIED_FOR,
            node_class: &specification.node_class,
        };
        let grouped = group(&resolved, &specification, std::slice::from_ref(chosen));
        let groups = match grouped.map_err(|error| of_template(&error)) {
            Ok(grouped) => grouped.groups,
            Err(Some(fault)) => return Err(fault),
            Err(None) => return Ok(None),
        };
        let tags = tags::of_launch(&class.spec.tags, owner);
        let (Some(template), Ok(tags)) = (groups.first(), tags) else { return Ok(None) };
        let (request, image_id) = (templates::request(&template.name, &template.template), &template.template.image_id);
        let part = LaunchPart { launch_id: TRIED_FOR, specification, claims: Vec::new() };
        let surroundings = Surroundings {
            subnets: &of_zone,
            order: Order::Price,
            tags: &tags,
            context: class.spec.context.as_deref(),
        };
        let fleet = requests(&part, &groups, 0, &surroundings).requests.into_iter().next();
        let Some(fleet) = fleet.map(|fleet| FleetRequest { count: 1, ..fleet }) else { return Ok(None) };
        let run = |subnet: &String| RunRequest {
            launch_template: template.name.clone(),
            instance_type: chosen.name.clone(),
            image_id: image_id.clone(),
            subnet_id: subnet.clone(),
            tags: tags.clone(),
        };
        let runs = of_zone.values().map(run).collect();
        Ok(Some(DryRuns { template: request, fleet, runs }))
    }

    /// What is tried: one type on demand, in these zones, for no NodePool in particular.
    fn specification_of_nobody<'z>(
        &self,
        class: &EC2NodeClass,
        chosen: &InstanceType,
        zones: impl Iterator<Item = &'z String>,
        labels: BTreeMap<String, String>,
    ) -> LaunchSpecification {
        let offerings = zones.map(|zone| Offering {
            instance_type: chosen.name.clone(),
            zone: zone.clone(),
            capacity_type: keys::ON_DEMAND.to_owned(),
        });
        LaunchSpecification {
            installation: self.identity.installation.clone(),
            node_pool: TRIED_FOR.to_owned(),
            node_class: class.metadata.name.clone().unwrap_or_default(),
            labels,
            taints: Vec::new(),
            wants_efa: false,
            wants_enclave: false,
            tenancy: keys::DEFAULT_TENANCY.to_owned(),
            reservation: None,
            lowers_min_values: false,
            offerings: offerings.collect(),
        }
    }
}

impl Inner {
    /// Remembers a class, with the status that it had here where it comes without one; forgets those that are gone.
    fn see(&mut self, class: &EC2NodeClass, now: Timestamp) -> EC2NodeClass {
        let name = class.metadata.name.clone().unwrap_or_default();
        let mut class = class.clone();
        let says_nothing = class.status.as_ref().is_none_or(|status| status.conditions.is_empty());
        if says_nothing && let Some((before, _)) = self.seen.get(&name) {
            class.status.clone_from(&before.status);
        }
        self.seen.insert(name, (class.clone(), now));
        self.seen.values_mut().for_each(|(_, at)| *at = not_to_come(*at, now));
        self.seen.retain(|_, (_, at)| now.duration_since(*at) < FORGOTTEN_AFTER);
        let seen = &self.seen;
        self.validator.retain(|name| seen.contains_key(name));
        class
    }
}

/// What machines are told of their cluster; `None` while EKS has not said it.
pub fn cluster(identity: &Identity, facts: &Resolution) -> Option<user_data::Cluster> {
    let known = facts.cluster.value()?;
    Some(user_data::Cluster {
        name: identity.cluster.clone(),
        endpoint: known.endpoint.clone(),
        certificate_authority: Some(known.certificate_authority.clone()).filter(|text| !text.is_empty()),
        service_cidr: service_cidr(known).map(str::to_owned),
        dns_address: dns_address(known),
    })
}
