//! A device for every request, found by trying in order and going back; the same devices give the same choice.

use std::collections::BTreeSet;

use super::CLAIM_DEVICES_MAX;
use super::claims::{ClaimDemand, Mode};
use super::slices::Device;

/// After this many tries the search gives up, and the node counts as one that does not do. The reference looks at a clock.
const TRIES_MAX: usize = 20_000;

/// By request and alternative, the positions of the devices of a node that its selectors match, taken ones too.
pub type Choices = Vec<Vec<Vec<usize>>>;

/// Positions of the devices that meet the demand, beside those that are taken; `None` when there are none.
pub fn allocate(
    demand: &ClaimDemand,
    devices: &[Device],
    choices: &Choices,
    taken: &BTreeSet<usize>,
) -> Option<Vec<usize>> {
    let mut search = Search { demand, devices, choices, taken, chosen: Vec::new(), tries: 0 };
    search.request(0).then(|| search.chosen.into_iter().map(|pick| pick.device).collect())
}

struct Search<'s> {
    demand: &'s ClaimDemand,
    devices: &'s [Device],
    choices: &'s Choices,
    taken: &'s BTreeSet<usize>,
    chosen: Vec<Pick>,
    tries: usize,
}

#[derive(Clone, Copy)]
struct Pick {
    device: usize,
    request: usize,
    alternative: usize,
}

impl Search<'_> {
    /// Meets this request and all after it.
    fn request(&mut self, request: usize) -> bool {
        let Some(asked) = self.demand.requests.get(request) else { return true };
        (0..asked.alternatives.len()).any(|alternative| match asked.alternatives[alternative].mode {
            Mode::ExactCount(count) => self.pick((request, alternative), count, 0),
            Mode::All => self.take_all((request, alternative)),
        })
    }

    fn pick(&mut self, (request, alternative): (usize, usize), count: usize, first: usize) -> bool {
        if count == 0 {
            return self.request(request + 1);
        }
        let choices = self.choices;
        for (position, device) in choices[request][alternative].iter().enumerate().skip(first) {
            let pick = Pick { device: *device, request, alternative };
            if !self.take(pick) {
                continue;
            }
            if self.pick((request, alternative), count - 1, position + 1) {
                return true;
            }
            self.chosen.pop();
        }
        false
    }

    /// All that match, which must be there and free.
    fn take_all(&mut self, (request, alternative): (usize, usize)) -> bool {
        let before = self.chosen.len();
        let choices = self.choices;
        let all = &choices[request][alternative];
        let taken =
            !all.is_empty() && all.iter().all(|device| self.take(Pick { device: *device, request, alternative }));
        if taken && self.request(request + 1) {
            return true;
        }
        self.chosen.truncate(before);
        false
    }

    fn take(&mut self, pick: Pick) -> bool {
        self.tries += 1;
        let is_free = self.devices[pick.device].is_free
            && !self.taken.contains(&pick.device)
            && self.chosen.iter().all(|chosen| chosen.device != pick.device);
        let claim = self.demand.requests[pick.request].claim;
        let of_claim = self.chosen.iter().filter(|chosen| self.demand.requests[chosen.request].claim == claim).count();
        let will_do =
            is_free && self.tries <= TRIES_MAX && of_claim < CLAIM_DEVICES_MAX && self.keeps_constraints(pick);
        if will_do {
            self.chosen.push(pick);
        }
        will_do
    }

    /// Whether the device agrees with those chosen before in every attribute that has to match.
    fn keeps_constraints(&self, pick: Pick) -> bool {
        let claim = self.demand.requests[pick.request].claim;
        self.demand.constraints.iter().filter(|constraint| constraint.claim == claim).all(|constraint| {
            let is_bound = |pick: &Pick| {
                let request = &self.demand.requests[pick.request];
                request.claim == claim && constraint.covers(request, &request.alternatives[pick.alternative])
            };
            if !is_bound(&pick) {
                return true;
            }
            let value = |pick: &Pick| self.devices[pick.device].attribute(&constraint.attribute);
            let own = value(&pick);
            own.is_some() && self.chosen.iter().filter(|chosen| is_bound(chosen)).all(|chosen| value(chosen) == own)
        })
    }
}
