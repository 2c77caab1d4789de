//! An account of AWS that a test describes: it answers as EC2 does, in pages, with filters, and with the failures that it is told to have.
//! It records every call.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cutlist::adapters::aws::api::account::{
    CallerIdentity, ClusterAnswer, InstanceProfile, NewInstanceProfile, ParameterAnswers, QueueMessage, Quota,
};
use cutlist::adapters::aws::api::instances::{
    CapacityReservation, InstanceAnswer, InstanceStatus, PlacementGroup, StateChange,
};
use cutlist::adapters::aws::api::launch::{
    FleetAnswer, FleetRequest, LaunchTemplateRequest, ListedTemplate, RunRequest,
};
use cutlist::adapters::aws::api::network::{Image, ImageQuery, SecurityGroup, SpotPrice, Subnet, TypeOffering, Zone};
use cutlist::adapters::aws::api::template::LaunchTemplate;
use cutlist::adapters::aws::api::{Action, ApiError, Ec2Api, Filter, Page, Tags, Tally};
use cutlist::core::catalog::facts::InstanceFacts;
use cutlist::core::model::HourlyPrice;
use jiff::Timestamp;
use serde::Deserialize;

use super::fleets::{Fleets, names_template};

/// What is in the account.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Things {
    pub cluster: Option<ClusterAnswer>,
    pub subnets: Vec<Subnet>,
    pub security_groups: Vec<SecurityGroup>,
    pub images: Vec<OwnedImage>,
    pub parameters: BTreeMap<String, String>,
    pub reservations: Vec<CapacityReservation>,
    pub placement_groups: Vec<PlacementGroup>,
    pub instances: Vec<InstanceAnswer>,
    pub zones: Vec<Zone>,
    pub instance_types: Vec<InstanceFacts>,
    /// Zones by instance type.
    pub offerings: BTreeMap<String, Vec<String>>,
    /// Products of the Price List.
    pub products: Vec<serde_json::Value>,
    /// Virtual processors by code.
    pub quotas: BTreeMap<String, f64>,
    /// Type, zone, dollars.
    pub spot_prices: Vec<(String, String, f64)>,
}

/// An image with what filters look at.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OwnedImage {
    /// An account, or `amazon`; `self` is this one.
    pub owner: String,
    #[serde(default)]
    pub tags: Tags,
    pub image: Image,
}

/// An account, as far as a test describes it.
#[derive(Default)]
pub struct Account {
    pub things: RefCell<Things>,
    pub profiles: RefCell<BTreeMap<String, InstanceProfile>>,
    pub templates: RefCell<BTreeSet<String>>,
    /// Of every template that was ever made.
    pub contents: RefCell<BTreeMap<String, LaunchTemplate>>,
    /// Codes by action, or by action and what is asked for, `ssm:GetParameters /own`: each such call fails. Behind the code a message may stand.
    pub failures: RefCell<BTreeMap<String, String>>,
    /// GetInstanceProfile shows nothing of what was made.
    pub iam_is_stale: Cell<bool>,
    /// Items of a page, and whether every other page is empty.
    pub page: Cell<(usize, bool)>,
    /// What ReceiveMessage gives, one after the other and as soon as it is there: messages, or a code.
    pub queue: RefCell<VecDeque<Result<Vec<QueueMessage>, &'static str>>>,
    /// What checks of instances say.
    pub statuses: RefCell<Vec<InstanceStatus>>,
    pub calls: RefCell<Vec<String>>,
    pub tally: Tally,
    pub fleets: Fleets,
}

impl Account {
    pub fn new(things: Things) -> Self {
        let account = Self { things: RefCell::new(things), ..Self::default() };
        account.page.set((1_000, false));
        account
    }

    /// The calls since the last time.
    pub fn take_calls(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.borrow_mut())
    }

    fn called(&self, action: Action, with: &str) -> Result<(), ApiError> {
        let call = format!("{action} {with}").trim_end().to_owned();
        self.calls.borrow_mut().push(call);
        let failures = self.failures.borrow();
        let fails = |(what, _): &(&String, &String)| {
            let (of_action, of_what) = what.split_once(' ').unwrap_or((what, ""));
            of_action == action.name() && with.contains(of_what)
        };
        let said = match failures.iter().find(fails) {
            Some((_, said)) => {
                let (code, message) = said.split_once(' ').unwrap_or((said.as_str(), "as the test says"));
                Err(ApiError::of(action, code, message))
            }
            None => Ok(()),
        };
        self.tally.count(action, &said);
        said
    }

    fn page<T>(&self, items: Vec<T>, page: Option<&str>) -> Page<T> {
        let (size, has_empty_ones) = self.page.get();
        let number: usize = page.map_or(0, |page| page.parse().unwrap());
        let step = if has_empty_ones { 2 } else { 1 };
        let is_empty = has_empty_ones && number % 2 == 1;
        let from = number / step * size;
        let is_last = from + size >= items.len();
        let items = if is_empty { Vec::new() } else { items.into_iter().skip(from).take(size).collect() };
        Page { items, next: (!is_last || (has_empty_ones && !is_empty)).then(|| (number + 1).to_string()) }
    }
}

/// Whether something passes all filters; `field` says what it has for the names that are no tags.
fn passes(filters: &[Filter], tags: &Tags, field: impl Fn(&str) -> Option<String>) -> bool {
    filters.iter().all(|filter| {
        let any = |found: &str| filter.values.iter().any(|value| is_like(value, found));
        match filter.name.split_once(':') {
            Some(("tag", key)) => tags.get(key).is_some_and(|value| any(value)),
            _ if filter.name == "tag-key" => tags.keys().any(|key| any(key)),
            _ => field(&filter.name).is_some_and(|value| any(&value)),
        }
    })
}

/// Not the code that is tested: one star is enough for the cases.
fn is_like(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        Some((begin, end)) => text.len() >= begin.len() + end.len() && text.starts_with(begin) && text.ends_with(end),
        None => pattern == text,
    }
}

fn text(filters: &[Filter]) -> String {
    let texts: Vec<String> = filters.iter().map(|one| format!("{}={}", one.name, one.values.join(","))).collect();
    texts.join(" ")
}

fn state(instance: &InstanceAnswer) -> String {
    let text = format!("{:?}", instance.state);
    if text == "ShuttingDown" { "shutting-down".to_owned() } else { text.to_lowercase() }
}

/// Of what no test asks for.
fn nothing<T>(action: Action) -> Result<T, ApiError> {
    Err(ApiError::of(action, "UnsupportedOperation", "no test asks for this"))
}

impl Ec2Api for Account {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    async fn describe_regions(&self) -> Result<Vec<String>, ApiError> {
        Ok(vec!["us-east-1".to_owned()])
    }

    async fn describe_availability_zones(&self) -> Result<Vec<Zone>, ApiError> {
        self.called(Action::DescribeAvailabilityZones, "")?;
        Ok(self.things.borrow().zones.clone())
    }

    async fn describe_subnets(&self, filters: &[Filter], page: Option<&str>) -> Result<Page<Subnet>, ApiError> {
        self.called(Action::DescribeSubnets, &text(filters))?;
        let mut found = self.things.borrow().subnets.clone();
        found.retain(|one| passes(filters, &one.tags, |name| (name == "subnet-id").then(|| one.id.clone())));
        Ok(self.page(found, page))
    }

    async fn describe_security_groups(
        &self,
        filters: &[Filter],
        page: Option<&str>,
    ) -> Result<Page<SecurityGroup>, ApiError> {
        self.called(Action::DescribeSecurityGroups, &text(filters))?;
        let mut found = self.things.borrow().security_groups.clone();
        found.retain(|one| {
            passes(filters, &one.tags, |name| match name {
                "group-id" => Some(one.id.clone()),
                "group-name" => Some(one.name.clone()),
                _ => None,
            })
        });
        Ok(self.page(found, page))
    }

    async fn describe_images(&self, query: &ImageQuery, page: Option<&str>) -> Result<Page<Image>, ApiError> {
        let owners = query.owners.join(",");
        self.called(Action::DescribeImages, format!("{} {}", text(&query.filters), owners).trim())?;
        let mut found = self.things.borrow().images.clone();
        found.retain(|one| query.owners.is_empty() || query.owners.contains(&one.owner));
        found.retain(|one| {
            passes(&query.filters, &one.tags, |name| match name {
                "image-id" => Some(one.image.id.clone()),
                "name" => Some(one.image.name.clone()),
                "state" => Some("available".to_owned()),
                _ => None,
            })
        });
        Ok(self.page(found.into_iter().map(|one| one.image).collect(), page))
    }

    async fn describe_capacity_reservations(
        &self,
        filters: &[Filter],
        page: Option<&str>,
    ) -> Result<Page<CapacityReservation>, ApiError> {
        self.called(Action::DescribeCapacityReservations, &text(filters))?;
        Ok(self.page(self.things.borrow().reservations.clone(), page))
    }

    async fn describe_placement_groups(&self, filters: &[Filter]) -> Result<Vec<PlacementGroup>, ApiError> {
        self.called(Action::DescribePlacementGroups, &text(filters))?;
        Ok(self.things.borrow().placement_groups.clone())
    }

    async fn describe_instance_types(&self, page: Option<&str>) -> Result<Page<InstanceFacts>, ApiError> {
        self.called(Action::DescribeInstanceTypes, "")?;
        Ok(self.page(self.things.borrow().instance_types.clone(), page))
    }

    async fn describe_instance_type_offerings(&self, page: Option<&str>) -> Result<Page<TypeOffering>, ApiError> {
        self.called(Action::DescribeInstanceTypeOfferings, "")?;
        let offering =
            |(name, zone): (&String, &String)| TypeOffering { instance_type: name.clone(), zone: zone.clone() };
        let things = self.things.borrow();
        let all = things.offerings.iter().flat_map(|(name, zones)| zones.iter().map(move |zone| (name, zone)));
        Ok(self.page(all.map(offering).collect(), page))
    }

    async fn describe_spot_price_history(
        &self,
        from: Timestamp,
        page: Option<&str>,
    ) -> Result<Page<SpotPrice>, ApiError> {
        self.called(Action::DescribeSpotPriceHistory, "")?;
        let price = |(instance_type, zone, dollars): &(String, String, f64)| SpotPrice {
            instance_type: instance_type.clone(),
            zone: zone.clone(),
            price: HourlyPrice::from_dollars(*dollars).unwrap(),
            since: from,
        };
        Ok(self.page(self.things.borrow().spot_prices.iter().map(price).collect(), page))
    }

    async fn describe_instances(
        &self,
        filters: &[Filter],
        page: Option<&str>,
    ) -> Result<Page<InstanceAnswer>, ApiError> {
        self.fleets.begin().await;
        self.called(Action::DescribeInstances, &text(filters))?;
        let mut found = self.things.borrow().instances.clone();
        found.extend(self.fleets.shown());
        found.retain(|one| {
            passes(filters, &one.tags, |name| match name {
                "instance-id" => Some(one.id.clone()),
                "instance-state-name" => Some(state(one)),
                _ => None,
            })
        });
        Ok(self.page(found, page))
    }

    /// All of them, whatever the filters are, as moto does.
    async fn describe_instance_status(
        &self,
        filters: &[Filter],
        page: Option<&str>,
    ) -> Result<Page<InstanceStatus>, ApiError> {
        self.called(Action::DescribeInstanceStatus, &text(filters))?;
        Ok(self.page(self.statuses.borrow().clone(), page))
    }

    async fn terminate_instances(&self, ids: &[String]) -> Result<Vec<StateChange>, ApiError> {
        self.fleets.begin().await;
        self.called(Action::TerminateInstances, &ids.join(" "))?;
        self.fleets.terminate(ids)
    }

    async fn create_tags(&self, resources: &[String], tags: &Tags) -> Result<(), ApiError> {
        self.called(Action::CreateTags, &resources.join(" "))?;
        self.fleets.tag(resources, tags);
        Ok(())
    }

    async fn describe_launch_templates(
        &self,
        filters: &[Filter],
        page: Option<&str>,
    ) -> Result<Page<ListedTemplate>, ApiError> {
        self.called(Action::DescribeLaunchTemplates, &text(filters))?;
        let templates = self.templates.borrow();
        let listed = templates.iter().filter(|name| names_template(filters, name)).map(|name| ListedTemplate {
            id: format!("lt-{name}"),
            name: name.clone(),
            created_at: None,
            tags: Tags::new(),
        });
        Ok(self.page(listed.collect(), page))
    }

    async fn create_launch_template(&self, request: &LaunchTemplateRequest, dry_run: bool) -> Result<(), ApiError> {
        self.fleets.begin().await;
        self.called(Action::CreateLaunchTemplate, if dry_run { "dry run" } else { &request.name })?;
        if dry_run {
            return Ok(());
        }
        self.contents.borrow_mut().insert(request.name.clone(), request.template.clone());
        if self.templates.borrow_mut().insert(request.name.clone()) {
            return Ok(());
        }
        Err(ApiError::of(Action::CreateLaunchTemplate, "InvalidLaunchTemplateName.AlreadyExistsException", "in use"))
    }

    async fn delete_launch_template(&self, name: &str) -> Result<(), ApiError> {
        self.called(Action::DeleteLaunchTemplate, name)?;
        self.templates.borrow_mut().remove(name);
        Ok(())
    }

    async fn create_fleet(&self, request: &FleetRequest, dry_run: bool) -> Result<FleetAnswer, ApiError> {
        if dry_run {
            return self.called(Action::CreateFleet, "dry run").map(|()| FleetAnswer::default());
        }
        self.fleets.begin().await;
        self.called(Action::CreateFleet, &request.client_token)?;
        let is_there = |name: &String| self.templates.borrow().contains(name);
        if let Some(config) = request.configs.iter().find(|config| !is_there(&config.template)) {
            let code = "InvalidLaunchTemplateName.NotFoundException";
            return Err(ApiError::of(Action::CreateFleet, code, config.template.clone()));
        }
        let answer = self.fleets.create(request, super::at(0));
        self.fleets.end().await;
        answer
    }

    async fn run_instances_dry_run(&self, request: &RunRequest) -> Result<(), ApiError> {
        self.called(Action::RunInstances, &request.subnet_id)
    }

    async fn get_parameters(&self, names: &[String]) -> Result<ParameterAnswers, ApiError> {
        self.called(Action::GetParameters, &names.join(" "))?;
        assert!((1..=10).contains(&names.len()), "{} names", names.len());
        let parameters = &self.things.borrow().parameters;
        let (found, missing) = names.iter().partition::<Vec<_>, _>(|name| parameters.contains_key(*name));
        let value = |name: &String| (name.clone(), parameters[name].clone());
        Ok(ParameterAnswers {
            found: found.into_iter().map(value).collect(),
            missing: missing.into_iter().cloned().collect(),
        })
    }

    async fn describe_cluster(&self, name: &str) -> Result<ClusterAnswer, ApiError> {
        self.called(Action::DescribeCluster, name)?;
        let cluster = self.things.borrow().cluster.clone();
        cluster.ok_or_else(|| ApiError::of(Action::DescribeCluster, "ResourceNotFoundException", "no such cluster"))
    }

    async fn get_caller_identity(&self) -> Result<CallerIdentity, ApiError> {
        self.called(Action::GetCallerIdentity, "")?;
        Ok(CallerIdentity {
            account: "111122223333".to_owned(),
            arn: "arn:aws:iam::111122223333:role/cutlist".to_owned(),
        })
    }

    async fn decode_authorization_message(&self, _: &str) -> Result<String, ApiError> {
        nothing(Action::DecodeAuthorizationMessage)
    }

    async fn get_instance_profile(&self, name: &str) -> Result<InstanceProfile, ApiError> {
        self.called(Action::GetInstanceProfile, name)?;
        let found = self.profiles.borrow().get(name).filter(|_| !self.iam_is_stale.get()).cloned();
        found.ok_or_else(|| ApiError::of(Action::GetInstanceProfile, "NoSuchEntity", "no such profile"))
    }

    async fn list_instance_profiles(
        &self,
        path_prefix: &str,
        page: Option<&str>,
    ) -> Result<Page<InstanceProfile>, ApiError> {
        self.called(Action::ListInstanceProfiles, path_prefix)?;
        let profiles = self.profiles.borrow();
        let listed = profiles.values().filter(|one| one.path.starts_with(path_prefix));
        // Lists leave tags out.
        Ok(self.page(listed.map(|one| InstanceProfile { tags: Tags::new(), ..one.clone() }).collect(), page))
    }

    async fn create_instance_profile(&self, profile: &NewInstanceProfile) -> Result<InstanceProfile, ApiError> {
        self.called(Action::CreateInstanceProfile, &profile.name)?;
        let mut profiles = self.profiles.borrow_mut();
        if profiles.contains_key(&profile.name) {
            return Err(ApiError::of(Action::CreateInstanceProfile, "EntityAlreadyExists", "it exists"));
        }
        let made = InstanceProfile {
            name: profile.name.clone(),
            path: profile.path.clone(),
            roles: Vec::new(),
            tags: profile.tags.clone(),
            created_at: None,
        };
        profiles.insert(profile.name.clone(), made.clone());
        Ok(made)
    }

    async fn add_role_to_instance_profile(&self, profile: &str, role: &str) -> Result<(), ApiError> {
        self.called(Action::AddRoleToInstanceProfile, &format!("{profile} {role}"))?;
        let fails = |code: &str| Err(ApiError::of(Action::AddRoleToInstanceProfile, code, "as IAM says it"));
        let mut profiles = self.profiles.borrow_mut();
        let Some(found) = profiles.get_mut(profile) else { return fails("NoSuchEntity") };
        if !found.roles.is_empty() {
            return fails("LimitExceeded");
        }
        found.roles.push(role.to_owned());
        Ok(())
    }

    async fn remove_role_from_instance_profile(&self, profile: &str, role: &str) -> Result<(), ApiError> {
        self.called(Action::RemoveRoleFromInstanceProfile, &format!("{profile} {role}"))?;
        if let Some(found) = self.profiles.borrow_mut().get_mut(profile) {
            found.roles.retain(|one| one != role);
        }
        Ok(())
    }

    async fn delete_instance_profile(&self, name: &str) -> Result<(), ApiError> {
        self.called(Action::DeleteInstanceProfile, name)?;
        let fails = |code: &str| Err(ApiError::of(Action::DeleteInstanceProfile, code, "as IAM says it"));
        let mut profiles = self.profiles.borrow_mut();
        match profiles.get(name) {
            None => fails("NoSuchEntity"),
            Some(found) if !found.roles.is_empty() => fails("DeleteConflict"),
            Some(_) => {
                profiles.remove(name);
                Ok(())
            }
        }
    }

    async fn get_queue_url(&self, name: &str) -> Result<String, ApiError> {
        self.called(Action::GetQueueUrl, name).map(|()| name.to_owned())
    }

    /// Waits as SQS does.
    async fn receive_messages(&self, _: &str, wait_seconds: u32) -> Result<Vec<QueueMessage>, ApiError> {
        self.called(Action::ReceiveMessage, "")?;
        for _ in 0..wait_seconds {
            if self.queue.borrow().is_empty() {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
        }
        let given = self.queue.borrow_mut().pop_front().unwrap_or_else(|| Ok(Vec::new()));
        given.map_err(|code| ApiError::of(Action::ReceiveMessage, code, "as SQS says it"))
    }

    async fn delete_message(&self, _: &str, _: &str) -> Result<(), ApiError> {
        nothing(Action::DeleteMessage)
    }

    async fn get_products(&self, filters: &[Filter], page: Option<&str>) -> Result<Page<String>, ApiError> {
        let value = |name: &str| filters.iter().find(|filter| filter.name == name).unwrap().values[0].clone();
        self.called(Action::GetProducts, &value("tenancy"))?;
        let is_metal = value("tenancy") == "Dedicated";
        let mut found = self.things.borrow().products.clone();
        found
            .retain(|one| one["product"]["attributes"]["instanceType"].as_str().unwrap().contains("metal") == is_metal);
        Ok(self.page(found.iter().map(ToString::to_string).collect(), page))
    }

    async fn get_service_quota(&self, code: &str) -> Result<Quota, ApiError> {
        self.called(Action::GetServiceQuota, code)?;
        let missing = || ApiError::of(Action::GetServiceQuota, "NoSuchResourceException", "no such quota");
        let value = self.things.borrow().quotas.get(code).copied().ok_or_else(missing)?;
        Ok(Quota { code: code.to_owned(), name: String::new(), value })
    }
}
