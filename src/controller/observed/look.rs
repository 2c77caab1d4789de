//! The one door through which the cluster is seen: without what another controller or installation looks after, and with all of it noted
//! that is in doubt. Who decides, who checks and who carries out see the same.

use std::sync::Arc;

use crate::core::snapshot::Snapshot;
use crate::definitions::Definitions;
use crate::ports::{Cluster, PortError};

use super::doubled;
use super::others::{Others, without_others};
use super::view::without_those_of_others;

/// Whose eyes these are.
#[derive(Clone, Copy, Debug)]
pub struct Eyes<'a> {
    pub installation: &'a str,
    /// Those in force, which may have files that nobody could read.
    pub definitions: Option<&'a Definitions>,
}

impl Eyes<'_> {
    /// The cluster as it is seen now; and which of its definitions are another installation's.
    pub async fn look<K: Cluster>(self, cluster: &K) -> Result<(Arc<Snapshot>, Others), PortError> {
        let observed = without_those_of_others(cluster.observe().await?);
        let (mut snapshot, others) = without_others(observed, self.installation);
        self.doubt_out_of_sight(&mut snapshot);
        doubled::doubt(&mut snapshot);
        Ok((snapshot, others))
    }

    /// What was applied before from files that can not be read now is in doubt.
    fn doubt_out_of_sight(self, snapshot: &mut Arc<Snapshot>) {
        let out_of_sight = self.definitions.map(|definitions| definitions.out_of_sight(snapshot, None));
        let out_of_sight = out_of_sight.unwrap_or_default();
        if !out_of_sight.is_empty() {
            Arc::make_mut(snapshot).doubts.unreadable.extend(out_of_sight);
        }
    }
}
