//! What a run shows on standard output: each event in its own form, and the summary.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use jiff::Timestamp;

use crate::cli::exit::{Failure, Outcome};
use crate::cli::output;
use crate::controller::Shutdown;
use crate::controller::events::{Event, Level, short};
use crate::core::plan::Revision;
use crate::render::chart::run_summary;
use crate::render::plan::text as plan_text;
use crate::render::terminal::{COLUMNS, Style, Tone, clean, width};

use super::lines::line;
use super::tally::Tally;

/// How times are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// `+01:30` since the beginning.
    SinceBeginning,
    /// `12:04:05`, UTC.
    Clock,
}

/// Shared by the controller's journal and the scenario, which take turns.
#[derive(Clone)]
pub struct Screen(Rc<RefCell<Inner>>);

struct Inner {
    out: Box<dyn Write>,
    times: Times,
    began: Timestamp,
    tally: Tally,
    shutdown: Shutdown,
    /// Why nothing more can be shown, unless the reader has seen enough.
    unwritable: Option<io::Error>,
    /// Whether the last thing shown was a block with an empty line after it.
    after_block: bool,
}

impl Screen {
    /// `out` takes text with terminal escapes, and drops them where they make no sense.
    pub fn new(out: Box<dyn Write>, times: Times, began: Timestamp, shutdown: Shutdown) -> Self {
        let tally = Tally::new(began);
        Self(Rc::new(RefCell::new(Inner { out, times, began, tally, shutdown, unwritable: None, after_block: true })))
    }

    /// The heading of a step.
    pub fn title(&self, position: usize, of: usize, title: &str) {
        let mut inner = self.0.borrow_mut();
        let heading = format!("── {position}/{of}  {} ", clean(title));
        let rule = "─".repeat(COLUMNS.saturating_sub(width(&heading)));
        inner.block(&format!("{}\n", Style::Coloured.paint(Tone::Strong, &format!("{heading}{rule}"))));
    }

    /// Says something in passing.
    pub fn note(&self, now: Timestamp, text: &str) {
        self.0.borrow_mut().said(now, text);
    }

    pub fn show(&self, now: Timestamp, event: &Event) {
        let mut inner = self.0.borrow_mut();
        inner.tally.count(now, event);
        match event {
            Event::FleetChanged { .. } | Event::MoveBegun { .. } => {}
            Event::PlanPosted { plan, .. } => inner.block(&plan_text(plan, Style::Coloured)),
            Event::RevisionFound { revision, title, rewritten, notes } => {
                inner.revision(now, revision, title, *rewritten);
                for note in notes {
                    inner.said(now, &format!("note: {}", note.text));
                }
            }
            Event::Linted { text, .. } => inner.linted(text),
            Event::RevisionRefused { in_force, .. } => {
                inner.said(now, &format!("the revision has errors: {}; nothing is pruned", stays(in_force.as_ref())));
            }
            Event::RevisionUnsigned { in_force, unsigned, further, .. } => {
                let stays = stays(in_force.as_ref());
                inner.said(now, &format!("the revision is not signed by who must have: {stays}; nothing is pruned"));
                for commit in unsigned {
                    inner.said(now, &commit.to_string());
                }
                if *further > 0 {
                    inner.said(now, &format!("and {further} more"));
                }
            }
            Event::RemovalHeld { in_force, node_pools, .. } => {
                let pools = node_pools.join(", ");
                let stays = stays(in_force.as_ref());
                inner.said(now, &format!("the revision would remove every NodePool ({pools})"));
                inner.said(now, &format!("it is held: {stays}; nothing is pruned"));
                inner.said(now, &format!("to let them go: kubectl delete nodepools {}", node_pools.join(" ")));
                inner.said(now, "then commit once more");
            }
            Event::WaitsForApproval { plan_id, moves, rules } => {
                let moves: Vec<_> = moves.iter().map(ToString::to_string).collect();
                let moves = (!moves.is_empty()).then(|| format!("move {}", moves.join(", ")));
                let of: Vec<String> = moves.into_iter().chain(rules.iter().cloned()).collect();
                inner.said(now, &format!("plan {} waits for approval of {}", short(plan_id), of.join("; ")));
            }
            Event::OlderRevisionHeld { in_force, .. } => {
                let stays = stays(in_force.as_ref());
                inner.said(now, &format!("the revision is older than what was followed: it is not used; {stays}"));
            }
            Event::OfAnotherCluster { in_force, because, .. } => {
                let stays = stays(in_force.as_ref());
                inner.said(now, &format!("the revision is for another cluster: it is not used; {stays}"));
                inner.said(now, because);
            }
            Event::DefinitionApplied { kind, name, is_new } => {
                inner.said(now, &format!("{} {kind}/{name}", if *is_new { "created" } else { "changed" }));
            }
            Event::DefinitionPruned { kind, name } => inner.said(now, &format!("removed {kind}/{name}")),
            Event::PlanSuperseded { plan_id, refusal, .. } => {
                inner.said(now, &format!("plan {} is superseded: {refusal}", short(plan_id)));
            }
            _ if event.level() == Level::Debug => {}
            _ => inner.event(now, event),
        }
    }

    /// The chart and the counts.
    pub fn summary(&self, now: Timestamp) {
        let mut inner = self.0.borrow_mut();
        let text = run_summary(&inner.tally.summary(now), Style::Coloured);
        inner.block(&text);
    }

    /// The outcome, unless what was to be shown could not be written.
    pub fn written(&self, outcome: Outcome) -> Result<Outcome, Failure> {
        match self.0.borrow_mut().unwritable.take() {
            Some(error) => Err(output::unwritable(error)),
            None => Ok(outcome),
        }
    }
}

impl Inner {
    fn time(&self, now: Timestamp) -> String {
        match self.times {
            Times::SinceBeginning => {
                let seconds = now.duration_since(self.began).as_secs();
                let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
                if hours > 0 {
                    format!("+{hours}:{minutes:02}:{seconds:02}")
                } else {
                    format!("+{minutes:02}:{seconds:02}")
                }
            }
            Times::Clock => now.strftime("%H:%M:%S").to_string(),
        }
    }

    fn event(&mut self, now: Timestamp, event: &Event) {
        let text = line(&self.time(now), event, Style::Coloured);
        self.write(&text);
    }

    fn dimmed_time(&self, now: Timestamp) -> String {
        Style::Coloured.paint(Tone::Dim, &format!("{:<9}", self.time(now)))
    }

    fn said(&mut self, now: Timestamp, text: &str) {
        let time = self.dimmed_time(now);
        self.write(&format!("{time}{}\n", clean(text)));
    }

    fn revision(&mut self, now: Timestamp, revision: &Revision, title: &str, rewritten: bool) {
        let id = revision.id.get(..7).unwrap_or(&revision.id);
        let what = clean(&format!("revision {id} ({})", revision.reference));
        let what = Style::Coloured.paint(Tone::Strong, &what);
        if !self.after_block {
            self.write("\n");
        }
        let time = self.dimmed_time(now);
        self.write(&format!("{time}{}\n", format!("{what}  {}", clean(title)).trim_end()));
        if rewritten {
            self.said(now, "history was rewritten: the revision before is not an ancestor of this one");
        }
    }

    /// One line where all is well, else the findings as a block.
    fn linted(&mut self, text: &str) {
        let text = text.trim_end();
        if text.lines().count() == 1 {
            self.write(&format!("{:9}lint: {text}\n", ""));
        } else {
            self.block(&format!("{text}\n"));
        }
    }

    /// Text with an empty line before and after it.
    fn block(&mut self, text: &str) {
        let before = if self.after_block { "" } else { "\n" };
        self.write(&format!("{before}{text}\n"));
        self.after_block = true;
    }

    /// A reader that closed the pipe has seen enough.
    fn write(&mut self, text: &str) {
        self.after_block = false;
        if let Err(error) = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()) {
            if self.unwritable.is_none() && !output::is_closed(&error) {
                self.unwritable = Some(error);
            }
            self.shutdown.request();
        }
    }
}

fn stays(in_force: Option<&Revision>) -> String {
    match in_force {
        Some(revision) => {
            format!("revision {} stays in force", revision.id.get(..7).unwrap_or(&revision.id))
        }
        None => "no revision is in force".to_owned(),
    }
}
