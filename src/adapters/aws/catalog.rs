//! What EC2 sells in the region now: types and offerings as it describes them, prices as they are, each with its age. What may not be
//! asked for is taken from the binary, and said so: a plan with assumed prices is better than none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp, Unit};

use super::api::network::Zone;
use super::api::{Action, ApiError, Ec2Api, pages};
use super::failures::FailureClass;
use super::prices::{self, OnDemand, Spot};
use super::resolution::known::LastAnswer;
use crate::core::catalog::facts::{self, Facts, InstanceFacts};
use crate::core::catalog::tables::{OnDemandPrices, assumed_spot_price};
use crate::core::catalog::{BuiltInError, Catalog, PricesAsked};
use crate::core::model::HourlyPrice;

const TYPES_LIFETIME: SignedDuration = SignedDuration::from_hours(12);
const ON_DEMAND_LIFETIME: SignedDuration = SignedDuration::from_hours(12);
/// EC2 changes them every few minutes by little.
const SPOT_LIFETIME: SignedDuration = SignedDuration::from_mins(30);
/// Lifetimes are longer by up to this part, each in its own way, so that controllers that start together do not ask together for ever.
const JITTER_PERCENT: i32 = 10;

/// Types and where they are sold.
#[derive(Clone, Debug, Default)]
struct Sold {
    types: Vec<InstanceFacts>,
    /// Zones by type.
    offered: BTreeMap<String, BTreeSet<String>>,
    zones: Vec<Zone>,
}

/// Why there is no catalog of what EC2 sells.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// What stands in for it would be taken for what is sold now.
    #[error("{}", .0.text())]
    NotSaid(ApiError),
    #[error(transparent)]
    BuiltIn(#[from] BuiltInError),
}

/// What EC2 sells in a region at this moment, and what of it is not live, for people.
pub async fn pull(api: &impl Ec2Api, region: &str, now: Timestamp) -> Result<(Arc<Catalog>, Vec<String>), PullError> {
    let mut live = LiveCatalog::new(region, "");
    live.refresh(api, now).await;
    if let Some(trouble) = live.sold.trouble.take() {
        return Err(PullError::NotSaid(trouble.error));
    }
    let doubts = live.doubts().into_iter().map(|doubt| doubt.text).collect();
    Ok((live.catalog()?, doubts))
}

/// The catalog of one region, kept up to date.
#[derive(Debug)]
pub struct LiveCatalog {
    region: String,
    /// 0 to 99; of the installation.
    spread: i32,
    sold: LastAnswer<Sold>,
    on_demand: LastAnswer<OnDemand>,
    spot: LastAnswer<Spot>,
    made: Option<Arc<Catalog>>,
}

impl LiveCatalog {
    /// `installation` spreads the moments at which it asks.
    pub fn new(region: &str, installation: &str) -> Self {
        let sum: u32 = installation.bytes().fold(0, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
        Self {
            region: region.to_owned(),
            spread: i32::try_from(sum % 100).unwrap_or_default(),
            sold: LastAnswer::default(),
            on_demand: LastAnswer::default(),
            spot: LastAnswer::default(),
            made: None,
        }
    }

    fn spread(&self, lifetime: SignedDuration) -> SignedDuration {
        lifetime + lifetime / 10_000 * (JITTER_PERCENT * self.spread)
    }

    /// Asks what is due. It does not fail: what went wrong stands in [`LiveCatalog::doubts`].
    pub async fn refresh(&mut self, api: &impl Ec2Api, now: Timestamp) {
        if self.sold.is_due(self.spread(TYPES_LIFETIME), now) {
            let result = sold(api).await;
            self.changed(&result);
            self.sold.record(result, now);
        }
        if self.on_demand.is_due(self.spread(ON_DEMAND_LIFETIME), now) {
            let result =
                prices::on_demand(api, &self.region).await.and_then(not_empty(Action::GetProducts, BTreeMap::is_empty));
            self.changed(&result);
            self.on_demand.record(result, now);
        }
        if self.spot.is_due(self.spread(SPOT_LIFETIME), now) {
            let result = prices::spot(api, now).await;
            let result = result.and_then(not_empty(Action::DescribeSpotPriceHistory, BTreeMap::is_empty));
            self.changed(&result);
            self.spot.record(result, now);
        }
    }

    fn changed<T>(&mut self, result: &Result<T, ApiError>) {
        if result.is_ok() {
            self.made = None;
        }
    }

    /// The catalog: the same one while nothing changed.
    pub fn catalog(&mut self) -> Result<Arc<Catalog>, BuiltInError> {
        if let Some(made) = &self.made {
            return Ok(made.clone());
        }
        let made = Arc::new(self.make()?);
        self.made = Some(made.clone());
        Ok(made)
    }

    fn make(&self) -> Result<Catalog, BuiltInError> {
        let live = self.sold.value().map(|sold| self.facts(sold));
        let facts = match &live {
            Some(facts) => facts,
            None => facts::embedded().map_err(BuiltInError::Damaged)?,
        };
        let built_in = OnDemandPrices::of_region(&self.region);
        let on_demand = |name: &str| match self.on_demand.value() {
            Some(prices) => prices.get(name).copied(),
            None => built_in.get(name),
        };
        // Without a price nobody sells it in that zone.
        let live_spot = self.spot.value().filter(|_| !self.mixes_currencies());
        let spot = |name: &str, zone: &str| -> Option<HourlyPrice> {
            match live_spot {
                Some(prices) => prices.get(&(name.to_owned(), zone.to_owned())).copied(),
                None => on_demand(name).map(assumed_spot_price),
            }
        };
        let date = self.on_demand.answer.as_ref().map(|answer| answer.at.strftime("%Y-%m-%d").to_string());
        let date = date.unwrap_or_else(|| built_in.date.to_owned());
        let made = Catalog::of_facts(&self.region, &date, facts, on_demand, spot);
        Ok(Catalog { prices_asked: self.prices_asked(live_spot.is_some()), ..made })
    }

    /// Whether spot prices can not be held against those on demand, which then are dollars of the binary: all that is sold as spot would look dear.
    fn mixes_currencies(&self) -> bool {
        self.on_demand.value().is_none() && self.spot.value().is_some() && prices::is_of_another_currency(&self.region)
    }

    /// In the form in which the binary has them.
    fn facts(&self, sold: &Sold) -> Facts {
        let zone =
            |zone: &Zone| facts::Zone { region: self.region.clone(), name: zone.name.clone(), id: zone.id.clone() };
        let mut zones: Vec<facts::Zone> = sold.zones.iter().map(zone).collect();
        zones.sort();
        let index: BTreeMap<&str, usize> =
            zones.iter().enumerate().map(|(index, zone)| (zone.name.as_str(), index)).collect();
        let mut instance_types = sold.types.clone();
        for one in &mut instance_types {
            let offered = sold.offered.get(&one.name).into_iter().flatten();
            one.zones = offered.filter_map(|zone| index.get(zone.as_str()).copied()).collect();
            one.zones.sort_unstable();
        }
        Facts { zones, instance_types }
    }

    /// What is not live, and what is old, for a plan; nothing while all is well.
    pub fn doubts(&self) -> Vec<Doubt> {
        let built_in = OnDemandPrices::of_region(&self.region);
        let program = format!("those of {} of {} in this program", built_in.region, built_in.date);
        let doubts = [
            doubt(About::InstanceTypes, &self.sold, "instance types", "those in this program"),
            doubt(About::OnDemandPrices, &self.on_demand, "on-demand prices", &program),
            doubt(About::SpotPrices, &self.spot, "spot prices", "taken as a part of on-demand"),
        ];
        let of_currency = self.mixes_currencies().then(|| Doubt {
            about: About::SpotPrices,
            is_old: false,
            text:
                "spot prices are taken as a part of on-demand: EC2 says them in yuan, and those on demand are dollars"
                    .to_owned(),
        });
        let in_yuan = prices::is_of_another_currency(&self.region) && self.on_demand.value().is_some();
        let of_sign = in_yuan.then(|| Doubt {
            about: About::OnDemandPrices,
            is_old: false,
            text: "prices are yuan, as EC2 says them: where `$` stands, and in amounts of the settings, yuan are meant"
                .to_owned(),
        });
        doubts.into_iter().flatten().chain(of_currency).chain(of_sign).collect()
    }

    /// Of those that are live and count.
    fn prices_asked(&self, spot_counts: bool) -> Option<PricesAsked> {
        let text = |at: Timestamp| at.round(Unit::Second).unwrap_or(at).to_string();
        let on_demand = self.on_demand.answer.as_ref().map(|it| text(it.at));
        let spot = self.spot.answer.as_ref().filter(|_| spot_counts).map(|it| text(it.at));
        (on_demand.is_some() || spot.is_some()).then_some(PricesAsked { on_demand, spot })
    }
}

/// Something in the catalog that is not as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    pub about: About,
    /// It was asked for once, and is old; otherwise something stands in for it.
    pub is_old: bool,
    /// For people: what, since when, why.
    pub text: String,
}

/// The parts of a catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    InstanceTypes,
    OnDemandPrices,
    SpotPrices,
}

/// `instead`: what stands in for it where nothing is known.
fn doubt<T>(about: About, known: &LastAnswer<T>, what: &str, instead: &str) -> Option<Doubt> {
    let why = known.trouble_text();
    if known.answer.is_some() {
        return why.map(|why| Doubt { about, is_old: true, text: format!("{what} {why}") });
    }
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    Some(Doubt { about, is_old: false, text: format!("{what} are not live, but {instead}{why}") })
}

/// A list that must not be empty: with an empty one, everything would be gone from the market, and nodes with it.
fn not_empty<T>(action: Action, is_empty: impl Fn(&T) -> bool) -> impl Fn(T) -> Result<T, ApiError> {
    move |value| {
        if !is_empty(&value) {
            return Ok(value);
        }
        let message = "the answer is empty, which can not be".to_owned();
        Err(ApiError { action, class: FailureClass::Invalid, code: "EmptyAnswer".to_owned(), message })
    }
}

async fn sold(api: &impl Ec2Api) -> Result<Sold, ApiError> {
    let ask = async |page: Option<String>| api.describe_instance_types(page.as_deref()).await;
    let types = pages::all(Action::DescribeInstanceTypes, ask).await?;
    let mut types = not_empty(Action::DescribeInstanceTypes, Vec::is_empty)(types)?;
    types.sort_by(|one, other| one.name.cmp(&other.name));
    types.dedup_by(|one, other| one.name == other.name);
    let ask = async |page: Option<String>| api.describe_instance_type_offerings(page.as_deref()).await;
    let offerings = pages::all(Action::DescribeInstanceTypeOfferings, ask).await?;
    let offerings = not_empty(Action::DescribeInstanceTypeOfferings, Vec::is_empty)(offerings)?;
    let mut offered: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for offering in offerings {
        offered.entry(offering.instance_type).or_default().insert(offering.zone);
    }
    let zones = api.describe_availability_zones().await?;
    Ok(Sold { types, offered, zones: not_empty(Action::DescribeAvailabilityZones, Vec::is_empty)(zones)? })
}
