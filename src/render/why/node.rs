//! Why a node is there, stays or went, for a terminal.

use crate::api::node_plan::NodePlanPhase;
use crate::core::plan::with_place;
use crate::core::why::NodeDetails;
use crate::core::why::node::{Decided, Decision, Exchange, WhyNode};
use crate::render::plan::units::count;
use crate::render::terminal::{Style, clean};

use super::{Page, fate_text, workloads};

/// Characters of a plan's identity and of a commit that are shown, as Git shows them.
const PLAN_CHARACTERS: usize = 12;
const COMMIT_CHARACTERS: usize = 7;

/// The answer for people.
pub fn text(why: &WhyNode, style: Style) -> String {
    let mut page = Page { style, text: String::new() };
    let claim = why.node_claim.as_ref().filter(|claim| **claim != why.node);
    let claim = claim.map(|claim| format!(" (NodeClaim {})", clean(claim))).unwrap_or_default();
    let verdict = if why.present.is_some() { "is there" } else { "is gone" };
    page.title(&format!("{}{claim} {verdict}", clean(&why.node)));
    match &why.present {
        Some(present) => {
            page.node(&present.details);
            page.row("plan", &fate_text(&present.fate));
            if let Some(exchange) = &present.exchange {
                page.exchange(exchange);
            }
        }
        None => page.gone(why),
    }
    for decision in &why.decisions {
        page.decision(decision);
    }
    if !why.namesakes.is_empty() {
        page.text.push('\n');
        page.title("Other nodes had this name");
    }
    for decision in &why.namesakes {
        page.decision(decision);
    }
    page.source(why);
    page.text
}

impl Page {
    /// Says what the node was that is gone, and where no plan removed it, that none did.
    fn gone(&mut self, why: &WhyNode) {
        let details = why.decisions.iter().rev().find_map(|decision| match &decision.decided {
            Decided::Created { details, .. } | Decided::Adopted { details, .. } | Decided::Removed { details, .. } => {
                Some(details)
            }
            Decided::NeedsConfirmation | Decided::HeldBack => None,
        });
        if let Some(details) = details {
            self.node(&NodeDetails { name: String::new(), ..details.clone() });
        }
        let was_removed = |decision: &Decision| matches!(decision.decided, Decided::Removed { begun: true, .. });
        if !why.decisions.iter().any(was_removed) {
            self.row(
                "but",
                "no posted plan removed it: it was interrupted, failed to launch, or was deleted by somebody else",
            );
        }
    }

    fn exchange(&mut self, exchange: &Exchange) {
        let Exchange { pods, together_with, replaced_by, saving_per_hour } = exchange;
        if !pods.is_empty() {
            self.row("moves", &format!("{}: {}", count(pods.len(), "pod"), workloads(pods)));
        }
        if !together_with.is_empty() {
            self.row("with it", &together_with.join(", "));
        }
        for (index, node) in replaced_by.iter().enumerate() {
            let NodeDetails { name, instance_type, capacity_type, zone, .. } = node;
            let price = node.price_per_hour.unwrap_or_default();
            let label = if index == 0 { "instead" } else { "" };
            self.row(label, &format!("{name}, {instance_type}, {capacity_type}, {zone}, {price}"));
        }
        self.row("saves", &saving_per_hour.to_string());
    }

    fn decision(&mut self, decision: &Decision) {
        self.text.push('\n');
        self.title(&headline(decision));
        self.row("because", &with_place(&decision.reason.text, decision.definition.as_ref()));
        match &decision.decided {
            Decided::Created { details, pods, considered, .. } => {
                if !pods.is_empty() {
                    self.row("for", &format!("{}: {}", count(pods.len(), "pod"), workloads(pods)));
                }
                self.considered(details, considered);
            }
            Decided::Removed { exchange, .. } => self.exchange(exchange),
            Decided::Adopted { details, .. } => self.row("by", &format!("NodePool {}", details.node_pool)),
            Decided::NeedsConfirmation | Decided::HeldBack => {}
        }
        self.row("plan", &plan(decision));
    }

    /// Says from which plans this is known, so that silence is not taken for an answer.
    fn source(&mut self, why: &WhyNode) {
        self.text.push('\n');
        let posted =
            why.records_since.as_ref().map(|since| format!("{} since {since}", count(why.records, "posted plan")));
        let kept = why.history_since.as_ref();
        let kept = kept.map(|since| format!("{} of earlier plans since {since}", count(why.history, "step")));
        let known: Vec<String> = posted.into_iter().chain(kept).collect();
        let text = match known.as_slice() {
            [_, ..] => known.join(", and "),
            [] if why.records_unread > 0 => "no posted plan that can be read".to_owned(),
            [] => "the snapshot has no NodePlans: what was decided before is not known".to_owned(),
        };
        let text = match why.records_unread {
            0 => text,
            unread => {
                format!("{text}; {unread} more can not be read (too long to be kept whole, or of another version)")
            }
        };
        self.row("known from", &text);
    }
}

fn headline(decision: &Decision) -> String {
    let Decision { at, until, plans, reason, .. } = decision;
    let done = |verb: &str, begun: bool| if begun { verb.to_owned() } else { format!("to be {verb}") };
    match &decision.decided {
        Decided::Created { begun, .. } => format!("{at}  {}", done("created", *begun)),
        Decided::Removed { begun, .. } => format!("{at}  {} ({:?})", done("removed", *begun), reason.code),
        Decided::Adopted { begun, .. } => format!("{at}  {} ({:?})", done("adopted", *begun), reason.code),
        Decided::NeedsConfirmation => format!("{at}  waits for a confirmation ({:?})", reason.code),
        Decided::HeldBack => match until {
            Some(until) => {
                format!("{at}  held back by {} until {until} ({:?})", count(*plans, "plan"), reason.code)
            }
            None => format!("{at}  held back ({:?})", reason.code),
        },
    }
}

/// Which plan decided, for which commit, how far the plan came, and who approved it.
fn plan(decision: &Decision) -> String {
    let Decision { plan_id, revision, phase, approved_by, .. } = decision;
    let short = |text: &str, characters: usize| text.chars().take(characters).collect::<String>();
    let phase = match phase {
        NodePlanPhase::Posted => "posted",
        NodePlanPhase::WaitsForApproval => "waits for approval",
        NodePlanPhase::Applying => "being applied",
        NodePlanPhase::Applied => "applied",
        NodePlanPhase::Superseded => "superseded",
    };
    let approval = approved_by.as_ref().map(|who| format!(", approved by {who}")).unwrap_or_default();
    let reference = if revision.reference.is_empty() { String::new() } else { format!(" ({})", revision.reference) };
    let (plan_id, commit) = (short(plan_id, PLAN_CHARACTERS), short(&revision.id, COMMIT_CHARACTERS));
    format!("{plan_id} of revision {commit}{reference}, {phase}{approval}")
}
