//! Which revision was applied last, by whichever process: it is noted on what was applied.

use jiff::Timestamp;
use kube::api::{Api, ListParams, PartialObjectMeta};
use kube::{Client, Resource};

use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::keys;
use crate::api::node_pool::NodePool;
use crate::ports::PortError;

use super::failure::port_error;

/// The commit that definitions of an installation were applied from, the newest where there are several, and when it was made. `None` where
/// nothing was applied, where it was from no commit, and where the kinds are not installed.
pub async fn applied_last(client: &Client, installation: &str) -> Result<Option<(String, Timestamp)>, PortError> {
    let pools = noted::<NodePool>(client, "nodepools", installation).await?;
    let classes = noted::<EC2NodeClass>(client, "ec2nodeclasses", installation).await?;
    Ok(pools.into_iter().chain(classes).max_by_key(|(_, at)| *at))
}

async fn noted<T>(client: &Client, resource: &str, installation: &str) -> Result<Vec<(String, Timestamp)>, PortError>
where
    T: Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let objects: Api<T> = Api::all(client.clone());
    let labels = format!("{}={},{}={installation}", keys::MANAGED_BY, keys::FIELD_MANAGER, keys::INSTALLATION);
    let listed = match objects.list_metadata(&ListParams::default().labels(&labels)).await {
        Ok(listed) => listed.items,
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => return Err(port_error(format!("list {resource}"), error)),
    };
    let note = |object: PartialObjectMeta<T>| {
        let annotations = object.metadata.annotations?;
        let at = annotations.get(keys::REVISION_COMMITTED_AT)?.parse().ok()?;
        Some((annotations.get(keys::REVISION)?.clone(), at))
    };
    Ok(listed.into_iter().filter_map(note).collect())
}
