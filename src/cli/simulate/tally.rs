//! What happened, counted and as a series over time.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::controller::events::{Event, Fleet};
use crate::core::plan::simulation::{PlanPosted, Point, SimulationSummary};
use crate::core::plan::{Risk, RiskCode};

/// More points than any chart has columns; when they are exceeded, every second one is dropped.
const POINTS_MAX: usize = 4096;
/// More than anybody reads; the rest is counted.
const RISKS_MAX: usize = 1000;

#[derive(Debug)]
pub struct Tally {
    began: Timestamp,
    first: Option<Fleet>,
    fleet: Fleet,
    series: Vec<Point>,
    plans: Vec<PlanPosted>,
    summary: SimulationSummary,
    /// By what it is about, as it was said first: each plan says anew what the one before did.
    risks: BTreeMap<(RiskCode, String), String>,
    risks_left_out: usize,
}

impl Tally {
    pub fn new(began: Timestamp) -> Self {
        Self {
            began,
            first: None,
            fleet: Fleet::default(),
            series: Vec::new(),
            plans: Vec::new(),
            summary: SimulationSummary::default(),
            risks: BTreeMap::new(),
            risks_left_out: 0,
        }
    }

    /// Counts an event. `pods_moved`: so far.
    pub fn count(&mut self, now: Timestamp, event: &Event, pods_moved: usize) {
        match event {
            Event::FleetChanged { fleet } => {
                self.first.get_or_insert(*fleet);
                self.fleet = *fleet;
                self.summary.nodes_at_most = self.summary.nodes_at_most.max(fleet.nodes);
                self.add(self.point(now, pods_moved));
            }
            Event::RegisteredNodeClaim { .. } => self.summary.nodes_created += 1,
            Event::DeletedNode { .. } => self.summary.nodes_removed += 1,
            Event::MoveBegun { .. } => self.summary.moves += 1,
            Event::PlanPosted { plan, .. } => {
                // Nothing is done before the first plan: of an empty cluster nothing was said until then.
                if self.first.is_none() {
                    self.first = Some(self.fleet);
                    self.add(self.point(now, pods_moved));
                }
                plan.risks.iter().for_each(|risk| self.note_risk(risk));
                self.plans.push(PlanPosted {
                    id: plan.id.clone(),
                    second: self.second(now),
                    steps: plan.steps.len(),
                    summary: plan.summary.clone(),
                });
            }
            _ => {}
        }
    }

    fn note_risk(&mut self, risk: &Risk) {
        let about = (risk.code, risk.subject.clone());
        if self.risks.len() < RISKS_MAX {
            self.risks.entry(about).or_insert_with(|| risk.text.clone());
        } else if !self.risks.contains_key(&about) {
            self.risks_left_out += 1;
        }
    }

    /// What was at risk, and how often something else was that is not kept.
    pub fn risks(&self) -> (Vec<Risk>, usize) {
        let risks = self.risks.iter();
        let risk = |((code, subject), text): (&(RiskCode, String), &String)| Risk {
            code: *code,
            subject: subject.clone(),
            text: text.clone(),
        };
        (risks.map(risk).collect(), self.risks_left_out)
    }

    /// How many plans were posted.
    pub fn plans(&self) -> usize {
        self.plans.len()
    }

    pub fn posted(&self) -> &[PlanPosted] {
        &self.plans
    }

    /// What it came to at `now`.
    pub fn summary(&self, now: Timestamp, pods_moved: usize) -> SimulationSummary {
        let first = self.first.unwrap_or(self.fleet);
        SimulationSummary {
            price_per_hour_start: first.price_per_hour,
            price_per_hour_end: self.fleet.price_per_hour,
            nodes_start: first.nodes,
            nodes_end: self.fleet.nodes,
            pods_bound_start: first.pods_bound,
            pods_bound_end: self.fleet.pods_bound,
            pods_pending_end: self.fleet.pods_pending,
            pods_moved,
            plans: self.plans.len(),
            virtual_seconds: self.second(now),
            ..self.summary.clone()
        }
    }

    /// The series, with the moment of the end.
    pub fn series(&self, now: Timestamp, pods_moved: usize) -> Vec<Point> {
        let mut series = self.series.clone();
        let last = self.point(now, pods_moved);
        if series.last() != Some(&last) {
            series.push(last);
        }
        series
    }

    fn point(&self, now: Timestamp, pods_moved: usize) -> Point {
        Point {
            second: self.second(now),
            price_per_hour: self.fleet.price_per_hour,
            nodes: self.fleet.nodes,
            pods_bound: self.fleet.pods_bound,
            pods_pending: self.fleet.pods_pending,
            pods_moved,
        }
    }

    /// Of several points of one second the last stays; the very first stays anyhow.
    fn add(&mut self, point: Point) {
        if self.series.len() > 1 {
            self.series.pop_if(|last| last.second == point.second);
        }
        // Room for the point of the end.
        if self.series.len() + 1 == POINTS_MAX {
            let mut keep = false;
            self.series.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.series.push(point);
    }

    fn second(&self, now: Timestamp) -> u64 {
        u64::try_from(now.duration_since(self.began).as_secs()).unwrap_or(0)
    }
}
