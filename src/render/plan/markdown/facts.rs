//! What EC2 says of what a plan launches and replaces: for each class a list, which stands before the nodes.

use crate::core::plan::{Plan, with_place};
use crate::render::plan::alike::by_class as grouped;

use super::details::Detail;
use super::escape::{code, prose};

/// Facts that are shown unfolded. More are folded, so that the nodes stay on the first screen.
const UNFOLDED_MAX: usize = 3;

/// Writes all facts, or in short forms only those that replace nodes or need a look.
pub(in crate::render) fn by_class(plan: &Plan, detail: Detail, text: &mut String) {
    let (mut lists, mut count) = (String::new(), 0);
    for (class, mut facts) in grouped(&plan.cloud_facts) {
        facts.retain(|fact| detail <= Detail::ChangeOnly || fact.code.mark() != '=');
        if facts.is_empty() || detail == Detail::CountsOnly {
            continue;
        }
        let title = if class.is_empty() { "EC2".to_owned() } else { format!("EC2NodeClass {}", code(class)) };
        lists.push_str(&format!("\n#### {title}\n\n"));
        count += facts.len();
        let shown = detail.rows(facts.len());
        for fact in facts.iter().take(shown) {
            let sentence = with_place(&fact.text, fact.definition.as_ref());
            let mark = code(&fact.code.mark().to_string());
            lists.push_str(&format!("- {mark} **{}** {}\n", prose(&fact.subject), prose(&sentence)));
        }
        let rest = facts.len().saturating_sub(shown);
        if rest > 0 {
            lists.push_str(&format!("- and {rest} more\n"));
        }
    }
    if count > UNFOLDED_MAX {
        text.push_str(&format!("\n<details><summary>EC2: <b>{count}</b> facts</summary>\n{lists}\n</details>\n"));
    } else {
        text.push_str(&lists);
    }
}
