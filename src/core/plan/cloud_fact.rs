//! What EC2 says of what a plan launches with and replaces: images, what selectors find, room in subnets.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DefinitionPlace, is_zero};

/// One fact, and what it means for nodes. One that could not be had is a fact, too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudFact {
    /// The EC2NodeClass; empty where it is of the account.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_class: String,
    /// `image amd64`, `subnets`, `addresses subnet-0a1`.
    pub subject: String,
    pub code: CloudFactCode,
    /// What nodes have now that is another one: ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// What new nodes get: an id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Nodes that it is about.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nodes: usize,
    /// By NodePool, those of them that have to be replaced, in this plan or as budgets allow it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replaces: BTreeMap<String, usize>,
    /// Whether this plan launches nodes with it, or replaces nodes because of it: then the plan's id covers it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub used: bool,
    pub text: String,
    /// The line that asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<DefinitionPlace>,
}

/// One code, one meaning, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum CloudFactCode {
    /// Nodes run another image than their class has for them now.
    ImageReplacesNodes,
    /// No node runs another image.
    ImageUnchanged,
    /// Which image it is could not be found out: no node is replaced for it.
    ImageUnknown,
    /// The terms of a class find another image than the one that is locked, which stays.
    ImageNewerThanLock,
    /// Nodes have other subnets, security groups or reservations than their class selects now.
    SelectionReplacesNodes,
    /// A subnet has addresses for what this plan launches.
    AddressesFree,
    /// The subnets of a class in a zone have fewer free addresses than this plan needs.
    AddressesShort,
    /// What is free could not be found out.
    AddressesUnknown,
    /// The account's quota has virtual processors for what this plan launches.
    QuotaLeft,
    /// The account's quota is nearly used up, has less than this plan needs, or keeps a NodePool from what it may buy.
    QuotaShort,
    /// How much of the account's quota is used could not be found out.
    QuotaUseUnknown,
    /// When prices were asked for.
    PricesAsked,
    /// Prices are so old that they may be others by now.
    PricesOld,
    /// When EC2 was asked, where the facts come from a file.
    FactsOfFile,
    /// The facts come from a file that is more than a day old.
    FactsOld,
    /// Something of EC2 could not be asked.
    NotKnown,
    /// The account did not allow an action when it was tried last.
    PermissionDenied,
}

impl CloudFactCode {
    /// The mark before it where people read it: `~` replaces nodes, `!` needs a look, `=` is as it was.
    pub fn mark(self) -> char {
        match self {
            Self::ImageReplacesNodes | Self::SelectionReplacesNodes => '~',
            Self::ImageUnknown
            | Self::AddressesShort
            | Self::AddressesUnknown
            | Self::QuotaShort
            | Self::QuotaUseUnknown
            | Self::PricesOld
            | Self::FactsOld
            | Self::NotKnown
            | Self::PermissionDenied => '!',
            Self::ImageUnchanged
            | Self::ImageNewerThanLock
            | Self::AddressesFree
            | Self::QuotaLeft
            | Self::PricesAsked
            | Self::FactsOfFile => '=',
        }
    }

    /// Whether it changes from minute to minute, so that it can not be part of what is approved.
    pub fn is_fleeting(self) -> bool {
        matches!(
            self,
            Self::AddressesFree
                | Self::AddressesShort
                | Self::AddressesUnknown
                | Self::QuotaLeft
                | Self::QuotaShort
                | Self::QuotaUseUnknown
                | Self::PricesAsked
                | Self::PricesOld
        )
    }
}
