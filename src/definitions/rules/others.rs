//! All rules that hold objects of other programs against the definitions: workloads, and what Flux and Argo CD are told.

use super::{applications, deliveries, image_architecture, pruning, recreation, references, single_replica, unserved};
use crate::definitions::argo::ArgoSource;
use crate::definitions::document::Document;
use crate::definitions::findings::Finding;
use crate::definitions::flux::FluxKustomizations;
use crate::definitions::revision::Object;
use crate::definitions::workloads::Workloads;

/// `is_all_known` says that nothing that is not read may bring more pools.
pub fn of_workloads(workloads: &Workloads, objects: &[Object], is_all_known: bool) -> Vec<Finding> {
    let mut findings = single_replica::of_workloads(workloads, objects);
    findings.extend(image_architecture::of_workloads(workloads, objects));
    findings.extend(unserved::of_workloads(workloads, objects, is_all_known));
    findings.extend(references::pools_of_workloads(workloads, objects, is_all_known));
    findings
}

/// `documents` are all of the files as they are written, `paths` those of the files in their order.
pub fn of_deliveries(
    (flux, argo): (&FluxKustomizations, &[ArgoSource<'_>]),
    documents: &[&Document],
    objects: &[Object],
    paths: &[&str],
) -> Vec<Finding> {
    let mut findings = recreation::of_deliveries(flux, argo, objects, paths);
    findings.extend(pruning::of_deliveries(flux, argo, objects, paths));
    findings.extend(applications::of_deliveries(argo, documents, objects, paths));
    findings.extend(deliveries::not_told(argo, objects, paths));
    findings
}
