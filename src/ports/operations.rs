//! What those who operate the controller look at: figures that are scraped, and whether it is ready.

/// Figures, under the names that the adapter gives them.
pub trait Meter {
    fn fleet(&self, nodes: usize, pods_bound: usize, pods_pending: usize, dollars_per_hour: f64);
    fn claim_created(&self, node_pool: &str, reason: &str);
    fn claim_terminated(&self);
    /// `reason` in lower case.
    fn claim_disrupted(&self, reason: &str, capacity_type: &str);
    fn node_registered(&self);
    fn node_deleted(&self);
    /// `decision`: delete or replace.
    fn decided(&self, decision: &str, reason: &str);
    /// `outcome`: found, refused, unsigned, held.
    fn revision(&self, outcome: &str);
    /// `outcome`: posted, waiting, approved, approval-refused, superseded, fulfilled.
    fn plan(&self, outcome: &str);
    /// Pods of a plan that was carried out, by where they landed.
    fn fulfilled(&self, as_planned: u64, elsewhere: u64);
    fn call_failed(&self);
    /// Kinds that are not seen as they are now, by their names in paths, and how many objects can not be read.
    fn doubts<'a>(&self, resources: impl Iterator<Item = &'a str>, unreadable_objects: usize);
}

/// Whether the controller is ready, and why not.
pub trait ReadyState {
    /// The cluster has been read.
    fn sees(&self);
    /// A revision is not used, and why; whether another one stays in force.
    fn refuse(&self, why: String, has_another: bool);
    /// There is another revision, of which nothing is known yet.
    fn forget_refused(&self);
    /// Why not all of the cluster is seen as it is; `None`: it is.
    fn doubt(&self, why: Option<String>);
    /// Objects that are not relied on, a sentence for each: they hold what they speak for, and nothing else.
    fn leaves_out(&self, objects: Vec<String>);
}
