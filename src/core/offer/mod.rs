//! What each pool may buy, and at which price: the catalog as node classes, refusals and gates leave it.

mod refused;

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::core::catalog::InstanceType;
use crate::core::catalog::node_class::NodeClassSettings;
use crate::core::plan::{Inputs, Note};

use refused::Refusals;
pub use refused::{REFUSED_SECONDS, RefusedOffering};

/// The instance types of one pool.
pub type Types = Rc<Vec<InstanceType>>;

/// The offer of all pools.
#[derive(Debug)]
pub struct Offer {
    /// By position of the pool in the inputs; `None` without a node class. Pools of one class share theirs.
    pools: Vec<Option<Types>>,
    notes: Vec<Note>,
}

impl Offer {
    /// O(node classes x types + pools).
    pub fn new(inputs: &Inputs<'_>) -> Self {
        let refusals = Refusals::new(inputs);
        let mut of_class: BTreeMap<&str, Types> = BTreeMap::new();
        let mut pools = Vec::new();
        for pool in inputs.node_pools {
            let name = pool.spec.template.spec.node_class_ref.name.as_str();
            let class = inputs.node_classes.iter().find(|class| class.metadata.name.as_deref() == Some(name));
            let types = class.map(|class| {
                let compile = || {
                    let settings = NodeClassSettings::read(&class.spec).0;
                    let mut types: Vec<InstanceType> =
                        inputs.catalog.instance_types.iter().map(|sold| settings.apply(sold)).collect();
                    refusals.leave_out(&mut types);
                    Rc::new(types)
                };
                Rc::clone(of_class.entry(name).or_insert_with(compile))
            });
            pools.push(types);
        }
        Self { pools, notes: refusals.notes(inputs.now) }
    }

    /// What the pool at this position of the inputs may buy; `None` without its node class, since it can launch nothing.
    pub fn of_pool(&self, pool: usize) -> Option<&Types> {
        self.pools.get(pool)?.as_ref()
    }

    /// What the reader should know of it.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }
}
