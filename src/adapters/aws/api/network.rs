//! What the Describe calls say of networks, images and what is sold.

use jiff::Timestamp;
use serde::Deserialize;

use super::{Filter, Tags};
use crate::core::model::HourlyPrice;

/// A zone of the region.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Zone {
    /// `us-east-1a`: each account has its own order of them.
    pub name: String,
    /// `use1-az6`: the same for all.
    pub id: Option<String>,
    /// Local and Wavelength Zones are others.
    pub is_ordinary: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Subnet {
    pub id: String,
    pub zone: String,
    #[serde(default)]
    pub zone_id: Option<String>,
    #[serde(default)]
    pub vpc_id: String,
    /// IPv4 addresses that are free.
    #[serde(default)]
    pub free_addresses: u32,
    #[serde(default)]
    pub tags: Tags,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecurityGroup {
    pub id: String,
    /// The group's own name, not its tag `Name`.
    pub name: String,
    #[serde(default)]
    pub vpc_id: String,
    #[serde(default)]
    pub tags: Tags,
}

/// Which images are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImageQuery {
    /// Accounts, or `self` and `amazon`; empty: any.
    pub owners: Vec<String>,
    pub filters: Vec<Filter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Image {
    pub id: String,
    #[serde(default)]
    pub name: String,
    /// `x86_64` or `arm64`.
    pub architecture: String,
    #[serde(default)]
    pub created_at: Option<Timestamp>,
    /// From when on its owner advises against it.
    #[serde(default)]
    pub deprecated_at: Option<Timestamp>,
}

/// An instance type in a zone where it is sold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeOffering {
    pub instance_type: String,
    pub zone: String,
}

/// What a spot instance of a type costs in a zone, since a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpotPrice {
    pub instance_type: String,
    pub zone: String,
    pub price: HourlyPrice,
    pub since: Timestamp,
}
