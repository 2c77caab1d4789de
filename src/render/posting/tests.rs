use super::*;
use crate::api::preview::{PreviewMarkdown, PreviewPlan, PreviewRevision, PreviewSnapshot};
