//! Definitions that are not in Git, but in the cluster beside it: made by Terraform, by a chart, or by another repository.

use crate::plan::{Note, NoteCode};
use crate::snapshot::Snapshot;
use cutlist_api::ec2_node_class::EC2NodeClass;
use cutlist_api::node_pool::NodePool;

/// Adds to the classes of the definitions those of the cluster that pools of the definitions name, and says which.
pub fn add_classes_of_cluster(
    pools: &[NodePool],
    classes: &mut Vec<EC2NodeClass>,
    snapshot: &Snapshot,
) -> Option<Note> {
    let mut added: Vec<&str> = Vec::new();
    for reference in pools.iter().map(|pool| &pool.spec.template.spec.node_class_ref) {
        let is_it = |class: &&EC2NodeClass| class.metadata.name.as_ref() == Some(&reference.name);
        if reference.is_of_others() || classes.iter().any(|class| is_it(&class)) {
            continue;
        }
        if let Some(class) = snapshot.node_classes.iter().find(|class| is_it(class)) {
            classes.push(class.clone());
            added.push(&reference.name);
        }
    }
    added.sort_unstable();
    let (noun, verb) = if added.len() == 1 { ("EC2NodeClass", "is") } else { ("EC2NodeClasses", "are") };
    (!added.is_empty()).then(|| {
        Note::new(
            NoteCode::NodeClassOfCluster,
            format!("{noun} {} {verb} not in the definitions: taken from the cluster", added.join(", ")),
        )
    })
}
