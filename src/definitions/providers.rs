//! Whose nodes a pool makes: those of this provider, of EKS Auto Mode, or of another cloud.

use crate::api::node_pool::{AUTO_MODE_GROUP, AUTO_MODE_KIND, CLASS_GROUP, CLASS_KIND};

use super::document::Document;
use super::suggest;

const REFERENCE: &str = "/spec/template/spec/nodeClassRef";

/// Providers whose groups or kinds are nearly those of AWS.
const NEARLY_OURS: [&str; 1] = ["karpenter.k8s.gcp"];

/// Whether a pool is one of EKS Auto Mode.
pub fn is_of_auto_mode(document: &Document) -> bool {
    let text = |field| document.str(&format!("{REFERENCE}/{field}"));
    text("group") == Some(AUTO_MODE_GROUP) && text("kind") == Some(AUTO_MODE_KIND)
}

/// Whether the class of a pool is one of Karpenter's provider of another cloud, and no slip in the words of this one.
pub fn is_of_another_provider(document: &Document) -> bool {
    let text = |field| document.str(&format!("{REFERENCE}/{field}"));
    // Before version 1 the group stood in the version.
    let group =
        || text("group").or_else(|| text("apiVersion").and_then(|it| it.split_once('/')).map(|(group, _)| group));
    let Some((group, kind)) = group().zip(text("kind")) else { return false };
    let is_nearly = |text: &str, ours: &str| text.eq_ignore_ascii_case(ours) || suggest::is_like(text, ours);
    let is_near_kind = match (kind.strip_suffix("NodeClass"), CLASS_KIND.strip_suffix("NodeClass")) {
        // `AKSNodeClass` is as far from it as a slip may be, and is none.
        (Some(kind), Some(ours)) => is_nearly(kind, ours),
        _ => is_nearly(kind, CLASS_KIND),
    };
    let groups = [CLASS_GROUP, AUTO_MODE_GROUP, "karpenter.sh", "karpenter.aws"];
    // `karpenter.k8s.ibm` is near as well, and so is `ECSNodeClass`: one half alone is a slip only beside the very other one.
    let is_slip = kind == CLASS_KIND
        || groups.contains(&group)
        || (is_near_kind && groups.iter().any(|ours| is_nearly(group, ours)))
        || (is_nearly(kind, AUTO_MODE_KIND) && is_nearly(group, AUTO_MODE_GROUP));
    let is_group = group.contains('.') && !group.contains('/');
    NEARLY_OURS.contains(&group) || (is_group && !kind.is_empty() && !is_slip)
}
