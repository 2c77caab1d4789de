//! Reads what EC2 describes, for the catalog in the binary (`core::catalog::facts`). Needs the permissions
//! `ec2:DescribeRegions`, `ec2:DescribeAvailabilityZones`, `ec2:DescribeInstanceTypes` and
//! `ec2:DescribeInstanceTypeOfferings`.

use std::collections::{BTreeMap, BTreeSet};

use super::api::{Action, ApiError, Ec2Api, pages};
use crate::core::catalog::facts::{Facts, InstanceFacts, Zone};

/// What EC2 describes in every region that is enabled for the account. `connect` gives the calls of a region; `progress` is told each
/// region before it is read.
pub async fn read<A: Ec2Api>(
    home: &A,
    connect: impl AsyncFn(&str) -> A,
    mut progress: impl FnMut(&str),
) -> Result<Facts, ApiError> {
    let regions: BTreeSet<String> = home.describe_regions().await?.into_iter().collect();
    let mut collected = Collected::default();
    for region in &regions {
        progress(region);
        collected.read_region(region, &connect(region).await).await?;
    }
    Ok(collected.into_facts())
}

/// What the regions said so far.
#[derive(Default)]
struct Collected {
    zones: BTreeSet<Zone>,
    /// The same in every region that has the type; the first one's word counts.
    instance_types: BTreeMap<String, InstanceFacts>,
    /// Names of zones by instance type.
    offered: BTreeMap<String, BTreeSet<String>>,
}

impl Collected {
    async fn read_region(&mut self, region: &str, api: &impl Ec2Api) -> Result<(), ApiError> {
        let ask = async |page: Option<String>| api.describe_instance_types(page.as_deref()).await;
        for facts in pages::all(Action::DescribeInstanceTypes, ask).await? {
            self.instance_types.entry(facts.name.clone()).or_insert(facts);
        }
        let zones = api.describe_availability_zones().await?;
        let ids: BTreeMap<&str, &String> = zones
            .iter()
            .filter(|zone| zone.is_ordinary)
            .filter_map(|zone| Some((zone.name.as_str(), zone.id.as_ref()?)))
            .collect();
        let ask = async |page: Option<String>| api.describe_instance_type_offerings(page.as_deref()).await;
        for offering in pages::all(Action::DescribeInstanceTypeOfferings, ask).await? {
            let Some(id) = ids.get(offering.zone.as_str()) else { continue };
            let zone = Zone { region: region.to_owned(), name: offering.zone.clone(), id: Some((*id).clone()) };
            self.zones.insert(zone);
            self.offered.entry(offering.instance_type).or_default().insert(offering.zone);
        }
        Ok(())
    }

    fn into_facts(self) -> Facts {
        let zones: Vec<Zone> = self.zones.into_iter().collect();
        let index: BTreeMap<&str, usize> =
            zones.iter().enumerate().map(|(index, zone)| (zone.name.as_str(), index)).collect();
        let mut instance_types: Vec<InstanceFacts> = self.instance_types.into_values().collect();
        for facts in &mut instance_types {
            let offered = self.offered.get(&facts.name).into_iter().flatten();
            facts.zones = offered.filter_map(|zone| index.get(zone.as_str()).copied()).collect();
            facts.zones.sort_unstable();
        }
        Facts { zones, instance_types }
    }
}
