//! Counts for the summary at the end of a run.

use jiff::Timestamp;

use crate::controller::events::{Event, Fleet};
use crate::render::chart::RunSummary;

/// More points than any chart has columns; when they are exceeded, every second one is dropped.
const POINTS_MAX: usize = 4096;

#[derive(Debug)]
pub struct Tally {
    began: Timestamp,
    fleet: Fleet,
    summary: RunSummary,
}

impl Tally {
    pub fn new(began: Timestamp) -> Self {
        Self { began, fleet: Fleet::default(), summary: RunSummary::default() }
    }

    pub fn count(&mut self, now: Timestamp, event: &Event) {
        match event {
            Event::FleetChanged { fleet } => self.fleet_changed(now, *fleet),
            Event::RegisteredNodeClaim { .. } => self.summary.nodes_created += 1,
            Event::DeletedNode { .. } => self.summary.nodes_removed += 1,
            Event::PlanPosted { .. } => self.summary.plans += 1,
            Event::MoveBegun { .. } => self.summary.moves += 1,
            Event::PlanFulfilled { fidelity, .. } => {
                self.summary.pods_planned += fidelity.pods_planned as usize;
                self.summary.pods_as_planned += fidelity.pods_as_planned as usize;
            }
            _ => {}
        }
    }

    fn fleet_changed(&mut self, now: Timestamp, fleet: Fleet) {
        let summary = &mut self.summary;
        summary.pods_placed += fleet.pods_bound.saturating_sub(self.fleet.pods_bound);
        summary.nodes_at_most = summary.nodes_at_most.max(fleet.nodes);
        summary.pods_at_most = summary.pods_at_most.max(fleet.pods_bound);
        if fleet.price_per_hour != self.fleet.price_per_hour {
            if summary.price_over_time.len() == POINTS_MAX {
                let mut keep = false;
                summary.price_over_time.retain(|_| {
                    keep = !keep;
                    keep
                });
            }
            let seconds = seconds_between(self.began, now);
            summary.price_over_time.push((seconds, fleet.price_per_hour));
        }
        self.fleet = fleet;
    }

    /// What the run came to at `now`.
    pub fn summary(&self, now: Timestamp) -> RunSummary {
        RunSummary {
            seconds: seconds_between(self.began, now),
            nodes_at_end: self.fleet.nodes,
            pods_pending_at_end: self.fleet.pods_pending,
            ..self.summary.clone()
        }
    }
}

fn seconds_between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_secs()).unwrap_or(0)
}
