//! A kind of the snapshot as kube's client wants one: with an address and metadata.

use std::borrow::Cow;

use kube::core::{DynamicResourceScope, ObjectMeta};
use kube::{Api, Client, Resource};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::core::snapshot::doubts::Unreadable;
use crate::core::snapshot::kinds::Stored;
use crate::core::snapshot::problem::problem;
use crate::core::snapshot::read_one::read_one;

/// Objects asked for in one answer.
pub(super) const PAGE: u32 = 500;
/// Where a list would never end.
pub(super) const SAME_PAGE: &str = "the API server gives the same page again and again";

/// Kinds of which an object is changed or removed only as it was seen: it keeps the version that it has.
const WRITTEN_AS_SEEN: &[&str] =
    &["CapacityBuffer", "DisruptionBudget", "EC2NodeClass", "NodeClaim", "NodeOverlay", "NodePool", "PodTemplate"];

/// One object, trimmed while it was read, with the part of its metadata that watching needs.
#[derive(Clone, Debug)]
pub(super) struct Watched<T> {
    pub(super) metadata: ObjectMeta,
    /// Or what can be told of an object that does not have the shape of its kind: it is set aside, and the others are read.
    pub(super) object: Result<T, Box<Unreadable>>,
}

/// Its address: group and version.
pub(super) fn group_and_version<T: Stored>() -> (&'static str, &'static str) {
    T::API_VERSION.split_once('/').unwrap_or(("", T::API_VERSION))
}

/// All objects of a kind, in every namespace.
pub(super) fn all<T: Stored>(client: &Client) -> Api<Watched<T>> {
    Api::all(client.clone())
}

impl<T: Stored> Watched<T> {
    pub(super) fn new(mut object: T) -> Self {
        object.complete();
        let (namespace, name, uid) = object.key();
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let metadata = ObjectMeta {
            namespace: text(namespace),
            name: text(name),
            uid: text(uid),
            resource_version: text(object.resource_version()),
            ..ObjectMeta::default()
        };
        object.trim();
        if let Some(version) = metadata.resource_version.as_ref().filter(|_| WRITTEN_AS_SEEN.contains(&T::KIND)) {
            object.set_resource_version(version.clone());
        }
        Self { metadata, object: Ok(object) }
    }
}

impl<T> From<Box<Unreadable>> for Watched<T> {
    fn from(unreadable: Box<Unreadable>) -> Self {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let metadata = ObjectMeta {
            namespace: text(&unreadable.namespace),
            name: text(&unreadable.name),
            uid: text(&unreadable.uid),
            resource_version: text(&unreadable.resource_version),
            ..ObjectMeta::default()
        };
        Self { metadata, object: Err(unreadable) }
    }
}

impl<'de, T: Stored> Deserialize<'de> for Watched<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let read = read_one(text.get()).map_err(|error| D::Error::custom(problem(&error)))?;
        Ok(read.map_or_else(Self::from, Self::new))
    }
}

impl<T: Stored> Resource for Watched<T> {
    type DynamicType = ();
    type Scope = DynamicResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        T::KIND.into()
    }
    fn group((): &()) -> Cow<'_, str> {
        group_and_version::<T>().0.into()
    }
    fn version((): &()) -> Cow<'_, str> {
        group_and_version::<T>().1.into()
    }
    fn plural((): &()) -> Cow<'_, str> {
        T::RESOURCE.into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
