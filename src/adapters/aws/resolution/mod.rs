//! What an EC2NodeClass selects in EC2: subnets, security groups, images, reservations, the placement group, its instance profile; and
//! what its nodes must know of the cluster.
//!
//! [`Resolver::refresh`] asks what is due and remembers the answers, each with its age; [`Resolver::facts`] says what that means for a
//! class, and [`status`] writes it into the class. Terms of all classes share one question ([`selection`]), so that calls do not grow
//! with classes. A failure never changes what is known ([`known`]): it stands beside it, and nothing drifts by it.

pub mod alias;
pub mod cluster;
pub mod images;
pub mod instance_profile;
pub mod known;
pub mod port;
pub mod reservations;
pub mod security_groups;
pub mod selection;
pub mod status;
pub mod subnets;
pub mod validation;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::api::account::ClusterAnswer;
use super::api::instances::{CapacityReservation, PlacementGroup};
use super::api::network::{Image, ImageQuery, SecurityGroup, Subnet};
use super::api::{Action, ApiError, Ec2Api, Filter, pages};
use super::failures::FailureClass;
use crate::api::ec2_node_class::EC2NodeClass;

use cluster::{Identity, KubernetesVersion};
use images::{ClassImages, ImagesError, LookedUp, ParameterLifetime, Source};
use instance_profile::{Made, ManagedProfile, Wanted};
use known::{LastAnswer, Trouble};
use selection::{FilterNames, Listed, Question};

/// As often as free addresses are needed anew.
const SUBNETS_LIFETIME: SignedDuration = SignedDuration::from_mins(1);
const SECURITY_GROUPS_LIFETIME: SignedDuration = SignedDuration::from_mins(5);
const IMAGES_LIFETIME: SignedDuration = SignedDuration::from_mins(5);
const CLUSTER_LIFETIME: SignedDuration = SignedDuration::from_mins(5);
/// How many instances fit into a reservation changes with each launch.
const RESERVATIONS_LIFETIME: SignedDuration = SignedDuration::from_mins(1);
const PLACEMENT_GROUPS_LIFETIME: SignedDuration = SignedDuration::from_mins(5);
const PROFILE_LIFETIME: SignedDuration = SignedDuration::from_mins(15);

/// GetParameters takes so many names.
const PARAMETERS_MAX: usize = 10;

const IMAGE_FILTERS: FilterNames = FilterNames { id: "image-id", name: "name" };

impl ParameterLifetime {
    fn duration(self) -> SignedDuration {
        match self {
            Self::Own => SignedDuration::from_mins(5),
            Self::Latest => SignedDuration::from_hours(1),
            Self::Pinned => SignedDuration::from_hours(24),
        }
    }
}

/// Remembers what AWS answered, for all classes.
#[derive(Debug)]
pub struct Resolver {
    identity: Identity,
    cluster: LastAnswer<ClusterAnswer>,
    subnets: Listed<Subnet>,
    security_groups: Listed<SecurityGroup>,
    parameters: BTreeMap<String, LastAnswer<Option<String>>>,
    queries: BTreeMap<ImageQuery, LastAnswer<Vec<Image>>>,
    images: Listed<Image>,
    reservations: LastAnswer<Vec<CapacityReservation>>,
    /// By instance, the reservation that it was launched into since, and when; no more than were left.
    launched: BTreeMap<String, (String, Timestamp)>,
    placement_groups: LastAnswer<Vec<PlacementGroup>>,
    /// By name, whether it is there.
    profiles: BTreeMap<String, (LastAnswer<bool>, Made)>,
}

/// What is known of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolution {
    pub class: String,
    /// Of the class that these are for.
    pub generation: Option<i64>,
    pub cluster: LastAnswer<ClusterAnswer>,
    pub subnets: LastAnswer<Vec<Subnet>>,
    pub security_groups: LastAnswer<Vec<SecurityGroup>>,
    pub images: Result<ClassImages, ImagesError>,
    pub reservations: LastAnswer<Vec<CapacityReservation>>,
    /// An error in words where the class selects one that is not there.
    pub placement_group: LastAnswer<Result<Option<PlacementGroup>, String>>,
    pub instance_profile: LastAnswer<Option<String>>,
    /// Terms that find nothing.
    pub unmatched: Vec<Unmatched>,
}

/// A selector term that finds nothing: the others may, so it is no failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// `spec.subnetSelectorTerms[1]`
    pub field: String,
    pub why: String,
}

impl Resolver {
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            cluster: LastAnswer::default(),
            subnets: Listed::default(),
            security_groups: Listed::default(),
            parameters: BTreeMap::new(),
            queries: BTreeMap::new(),
            images: Listed::default(),
            reservations: LastAnswer::default(),
            launched: BTreeMap::new(),
            placement_groups: LastAnswer::default(),
            profiles: BTreeMap::new(),
        }
    }

    /// Asks what is due for these classes, and forgets what none of them needs. `may_write`: whether instance profiles may be made.
    /// It does not fail: what went wrong stands in the facts.
    pub async fn refresh(&mut self, api: &impl Ec2Api, classes: &[EC2NodeClass], may_write: bool, now: Timestamp) {
        if self.cluster.is_due(CLUSTER_LIFETIME, now) {
            self.cluster.record(api.describe_cluster(&self.identity.cluster).await, now);
        }
        self.refresh_images(api, classes, now).await;
        self.refresh_subnets(api, classes, now).await;
        self.refresh_security_groups(api, classes, now).await;
        let selects_reservations = classes.iter().any(|it| !it.spec.capacity_reservation_selector_terms.is_empty());
        if selects_reservations && self.reservations.is_due(RESERVATIONS_LIFETIME, now) {
            let active = [Filter::new("state", ["active"])];
            let ask = async |page: Option<String>| api.describe_capacity_reservations(&active, page.as_deref()).await;
            self.reservations.record(pages::all(Action::DescribeCapacityReservations, ask).await, now);
            let asked_at = self.reservations.answer.as_ref().map(|answer| answer.at);
            self.launched.retain(|_, (_, at)| asked_at.is_none_or(|asked_at| *at >= asked_at));
        }
        let selects_group = classes.iter().any(|class| class.spec.placement_group_selector.is_some());
        if selects_group && self.placement_groups.is_due(PLACEMENT_GROUPS_LIFETIME, now) {
            let available = [Filter::new("state", ["available"])];
            self.placement_groups.record(api.describe_placement_groups(&available).await, now);
        }
        self.refresh_profiles(api, classes, may_write, now).await;
    }

    async fn refresh_subnets(&mut self, api: &impl Ec2Api, classes: &[EC2NodeClass], now: Timestamp) {
        let question = Question::of(classes.iter().flat_map(|class| subnets::terms(&class.spec)));
        if !self.subnets.is_due(&question, SUBNETS_LIFETIME, now) {
            return;
        }
        let answer = each_call(&question, subnets::FILTERS, async |filters| {
            let ask = async |page: Option<String>| api.describe_subnets(filters, page.as_deref()).await;
            pages::all(Action::DescribeSubnets, ask).await
        });
        let answer = answer.await;
        self.subnets.record(question, answer, now);
    }

    async fn refresh_security_groups(&mut self, api: &impl Ec2Api, classes: &[EC2NodeClass], now: Timestamp) {
        let question = Question::of(classes.iter().flat_map(|class| security_groups::terms(&class.spec)));
        if !self.security_groups.is_due(&question, SECURITY_GROUPS_LIFETIME, now) {
            return;
        }
        let answer = each_call(&question, security_groups::FILTERS, async |filters| {
            let ask = async |page: Option<String>| api.describe_security_groups(filters, page.as_deref()).await;
            pages::all(Action::DescribeSecurityGroups, ask).await
        });
        let answer = answer.await;
        self.security_groups.record(question, answer, now);
    }

    async fn refresh_images(&mut self, api: &impl Ec2Api, classes: &[EC2NodeClass], now: Timestamp) {
        let sources: Vec<Source> = classes.iter().flat_map(|class| self.sources(class).unwrap_or_default()).collect();
        self.refresh_parameters(api, &sources, now).await;
        self.refresh_queries(api, &sources, now).await;
        let ids = sources.iter().filter_map(|source| match source {
            Source::Id(id) => Some(id.clone()),
            Source::Parameter { name, .. } => {
                self.parameters.get(name)?.value()?.clone().filter(|value| value.starts_with("ami-"))
            }
            Source::Query { .. } => None,
        });
        let question = Question::of_ids(ids);
        if !self.images.is_due(&question, IMAGES_LIFETIME, now) {
            return;
        }
        let answer = each_call(&question, IMAGE_FILTERS, async |filters| {
            let query = ImageQuery { owners: Vec::new(), filters: [filters, &[images::available()]].concat() };
            let ask = async |page: Option<String>| api.describe_images(&query, page.as_deref()).await;
            pages::all(Action::DescribeImages, ask).await
        });
        let answer = answer.await;
        self.images.record(question, answer, now);
    }

    async fn refresh_parameters(&mut self, api: &impl Ec2Api, sources: &[Source], now: Timestamp) {
        // The shortest lifetime that anybody wants of a name.
        let mut wanted: BTreeMap<&String, ParameterLifetime> = BTreeMap::new();
        for source in sources {
            if let Source::Parameter { name, lifetime, .. } = source {
                wanted.entry(name).and_modify(|it| *it = (*it).min(*lifetime)).or_insert(*lifetime);
            }
        }
        self.parameters.retain(|name, _| wanted.contains_key(name));
        // A name that somebody forbids, or that is none, fails the call for all: such ones are asked for alone.
        let (mut together, mut own, mut alone) = (Vec::new(), Vec::new(), Vec::new());
        for (name, lifetime) in &wanted {
            let known = self.parameters.entry((*name).clone()).or_default();
            if !known.is_due(lifetime.duration(), now) {
                continue;
            }
            let spoils = known.trouble.as_ref().is_some_and(|trouble| spoils_others(&trouble.error));
            match (spoils, lifetime) {
                (true, _) => alone.push((*name).clone()),
                (false, ParameterLifetime::Own) => own.push((*name).clone()),
                (false, ParameterLifetime::Latest | ParameterLifetime::Pinned) => together.push((*name).clone()),
            }
        }
        let batches = together.chunks(PARAMETERS_MAX).chain(own.chunks(PARAMETERS_MAX)).chain(alone.chunks(1));
        for batch in batches {
            match api.get_parameters(batch).await {
                Err(error) if spoils_others(&error) && batch.len() > 1 => {
                    for name in batch.chunks(1) {
                        let answer = api.get_parameters(name).await;
                        self.record_parameters(name, answer, now);
                    }
                }
                answer => self.record_parameters(batch, answer, now),
            }
        }
    }

    fn record_parameters(
        &mut self,
        names: &[String],
        answer: Result<super::api::account::ParameterAnswers, ApiError>,
        now: Timestamp,
    ) {
        for name in names {
            let value = answer.as_ref().map(|answers| answers.found.get(name).cloned()).map_err(Clone::clone);
            self.parameters.entry(name.clone()).or_default().record(value, now);
        }
    }

    async fn refresh_queries(&mut self, api: &impl Ec2Api, sources: &[Source], now: Timestamp) {
        let wanted: BTreeSet<&ImageQuery> = sources
            .iter()
            .filter_map(|source| match source {
                Source::Query { query, .. } => Some(query),
                Source::Id(_) | Source::Parameter { .. } => None,
            })
            .collect();
        self.queries.retain(|query, _| wanted.contains(query));
        for query in wanted {
            let known = self.queries.entry(query.clone()).or_default();
            if known.is_due(IMAGES_LIFETIME, now) {
                let ask = async |page: Option<String>| api.describe_images(query, page.as_deref()).await;
                known.record(pages::all(Action::DescribeImages, ask).await, now);
            }
        }
    }

    async fn refresh_profiles(&mut self, api: &impl Ec2Api, classes: &[EC2NodeClass], may_write: bool, now: Timestamp) {
        let wanted: BTreeMap<String, ManagedProfile> = classes
            .iter()
            .filter_map(|class| match instance_profile::wanted(&self.identity, class) {
                Wanted::Managed(managed) => Some((managed.profile.name.clone(), managed)),
                Wanted::Named(_) | Wanted::Nothing => None,
            })
            .collect();
        self.profiles.retain(|name, _| wanted.contains_key(name));
        for (name, managed) in &wanted {
            let (known, made) = self.profiles.entry(name.clone()).or_default();
            if !known.is_due(PROFILE_LIFETIME, now) {
                continue;
            }
            let result = if may_write {
                instance_profile::ensure(api, managed, &self.identity, made, now).await.map(|()| true)
            } else {
                match api.get_instance_profile(name).await {
                    Ok(_) => Ok(true),
                    Err(error) if error.class == FailureClass::NotFound => Ok(false),
                    Err(error) => Err(error),
                }
            };
            known.record(result, now);
        }
    }

    fn kubernetes(&self) -> Option<KubernetesVersion> {
        let of_eks = self.cluster.value().map(|cluster| cluster.version.as_str());
        of_eks.or(self.identity.kubernetes_version.as_deref()).and_then(KubernetesVersion::parse)
    }

    fn sources(&self, class: &EC2NodeClass) -> Result<Vec<Source>, ImagesError> {
        images::sources(&class.spec, self.kubernetes())
    }

    /// What is known of a class by now.
    pub fn facts(&self, class: &EC2NodeClass, now: Timestamp) -> Resolution {
        let spec = &class.spec;
        let by_id = |id: &str| {
            let image = |all: &[Image]| all.iter().find(|image| image.id == id).cloned();
            self.images.pick(&Question::of_ids([id.to_owned()]), image)
        };
        let looked_up = LookedUp { parameters: &self.parameters, queries: &self.queries, by_id: &by_id };
        let images = self.sources(class).map(|sources| images::collect(&sources, &looked_up, now));
        let subnets = self.subnets.pick(&subnets::question(spec), |all| subnets::select(spec, all));
        let groups =
            self.security_groups.pick(&security_groups::question(spec), |all| security_groups::select(spec, all));
        let mut unmatched = unmatched("subnetSelectorTerms", subnets::terms(spec), &subnets, "subnet");
        unmatched.extend(self::unmatched(
            "securityGroupSelectorTerms",
            security_groups::terms(spec),
            &groups,
            "security group",
        ));
        let of_images = images.iter().flat_map(|images| &images.unmatched);
        unmatched
            .extend(of_images.map(|why| Unmatched { field: "spec.amiSelectorTerms".to_owned(), why: why.clone() }));
        let reservations = if spec.capacity_reservation_selector_terms.is_empty() {
            LastAnswer::answered(Vec::new(), now)
        } else {
            self.reservations.map(|all| self.left(reservations::select(spec, all)))
        };
        let placement_group = if spec.placement_group_selector.is_none() {
            LastAnswer::answered(Ok(None), now)
        } else {
            self.placement_groups.map(|all| reservations::placement_group(spec, all))
        };
        Resolution {
            class: class.metadata.name.clone().unwrap_or_default(),
            generation: class.metadata.generation,
            cluster: self.cluster.clone(),
            subnets,
            security_groups: groups,
            images,
            reservations,
            placement_group,
            instance_profile: self.instance_profile(class, now),
            unmatched,
        }
    }

    /// An instance runs in a capacity reservation, which has one less until EC2 is asked again.
    pub fn launched_into(&mut self, reservation: &str, instance: &str, now: Timestamp) {
        self.launched.entry(instance.to_owned()).or_insert_with(|| (reservation.to_owned(), now));
    }

    /// The same reservations without what was launched into them since EC2 was asked.
    fn left(&self, mut reservations: Vec<CapacityReservation>) -> Vec<CapacityReservation> {
        for (of, _) in self.launched.values() {
            let taken = reservations.iter_mut().filter(|it| it.id == *of);
            taken.for_each(|it| it.available_count = it.available_count.saturating_sub(1));
        }
        reservations
    }

    fn instance_profile(&self, class: &EC2NodeClass, now: Timestamp) -> LastAnswer<Option<String>> {
        match instance_profile::wanted(&self.identity, class) {
            Wanted::Named(name) => LastAnswer::answered(Some(name), now),
            Wanted::Nothing => LastAnswer::answered(None, now),
            Wanted::Managed(managed) => {
                let name = managed.profile.name;
                self.profiles
                    .get(&name)
                    .map_or_else(LastAnswer::default, |(known, _)| known.map(|is_there| is_there.then(|| name.clone())))
            }
        }
    }

    /// All subnets that any class may select, and when EC2 was asked for them.
    pub fn listed_subnets(&self) -> Option<(&[Subnet], Timestamp)> {
        self.subnets.listed()
    }

    /// Every trouble there is at the moment, by what it is about: for the notes of a plan, each once for all classes.
    pub fn troubles(&self) -> Vec<(Action, &Trouble)> {
        let of_listed = [self.subnets.trouble(), self.security_groups.trouble(), self.images.trouble()];
        let of_known =
            [self.cluster.trouble.as_ref(), self.reservations.trouble.as_ref(), self.placement_groups.trouble.as_ref()];
        let parameters = self.parameters.values().filter_map(|known| known.trouble.as_ref());
        let queries = self.queries.values().filter_map(|known| known.trouble.as_ref());
        let profiles = self.profiles.values().filter_map(|(known, _)| known.trouble.as_ref());
        let all = of_listed.into_iter().chain(of_known).flatten().chain(parameters).chain(queries).chain(profiles);
        let mut by_action: BTreeMap<Action, &Trouble> = BTreeMap::new();
        for trouble in all {
            let first = by_action.entry(trouble.error.action).or_insert(trouble);
            if trouble.since < first.since {
                *first = trouble;
            }
        }
        by_action.into_iter().collect()
    }
}

/// Whether a name that causes it fails the call for the others, too.
fn spoils_others(error: &ApiError) -> bool {
    matches!(error.class, FailureClass::Denied | FailureClass::Invalid)
}

/// Asks each part of a question, and puts the lists together.
async fn each_call<T>(
    question: &Question,
    names: FilterNames,
    mut ask: impl AsyncFnMut(&[Filter]) -> Result<Vec<T>, ApiError>,
) -> Result<Vec<T>, ApiError> {
    let mut all = Vec::new();
    for filter in question.calls(names) {
        all.extend(ask(&[filter]).await?);
    }
    Ok(all)
}

fn unmatched<'t, T: selection::Selectable>(
    field: &str,
    terms: impl Iterator<Item = selection::Term<'t>>,
    found: &LastAnswer<Vec<T>>,
    what: &str,
) -> Vec<Unmatched> {
    let Some(found) = found.value() else { return Vec::new() };
    let indexed = terms.enumerate().filter(|(_, term)| !found.iter().any(|one| term.selects(one)));
    indexed
        .map(|(index, term)| Unmatched {
            field: format!("spec.{field}[{index}]"),
            why: format!("no {what} has {}", term.text()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_launched_into_a_reservation_is_not_left() {
        let reservation: CapacityReservation = serde_json::from_value(json!({
            "id": "cr-1", "instanceType": "m5.large", "zone": "us-east-1a", "ownerId": "111122223333",
            "instanceMatchCriteria": "targeted", "reservationType": "default", "totalCount": 2, "availableCount": 2,
        }))
        .unwrap();
        let identity = Identity {
            cluster: "demo".to_owned(),
            region: "us-east-1".to_owned(),
            installation: "one".to_owned(),
            kubernetes_version: None,
        };
        let mut resolver = Resolver::new(identity);
        resolver.launched_into("cr-1", "i-1", Timestamp::UNIX_EPOCH);
        resolver.launched_into("cr-1", "i-1", Timestamp::UNIX_EPOCH);
        resolver.launched_into("cr-2", "i-2", Timestamp::UNIX_EPOCH);
        assert_eq!(resolver.left(vec![reservation])[0].available_count, 1, "one of this one, each instance once");
    }
}
