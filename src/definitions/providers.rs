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
    let Some((group, kind)) = text("group").zip(text("kind")) else { return false };
    let is_nearly = |text: &str, ours: &str| text.eq_ignore_ascii_case(ours) || suggest::is_like(text, ours);
    // `AKSNodeClass` is as far from it as a slip may be, and is none.
    let is_slip_of_kind = match (kind.strip_suffix("NodeClass"), CLASS_KIND.strip_suffix("NodeClass")) {
        (Some(kind), Some(ours)) => is_nearly(kind, ours),
        _ => is_nearly(kind, CLASS_KIND),
    };
    let is_slip = is_slip_of_kind
        || [CLASS_GROUP, AUTO_MODE_GROUP, "karpenter.sh", "karpenter.aws"].iter().any(|ours| is_nearly(group, ours));
    let is_group = group.contains('.') && !group.contains('/');
    NEARLY_OURS.contains(&group) || (is_group && !kind.is_empty() && !is_slip)
}
