//! Plans of a cluster without a forge: they are posted as `NodePlan` objects, which the controller does itself.

use crate::core::plan::{Plan, Revision};
use crate::ports::{Forge, PortError};

pub struct NoForge;

impl Forge for NoForge {
    async fn post_plan(&self, _plan: &Plan, _markdown: impl Fn() -> String) -> Result<(), PortError> {
        Ok(())
    }

    async fn post_failure(&self, _revision: &Revision, _headline: &str, _markdown: &str) -> Result<(), PortError> {
        Ok(())
    }
}
