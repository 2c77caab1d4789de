//! The best filling of one bin with whole pieces: branch and bound, with what the linear program of parts says of room and pieces.
//!
//! A piece is worth the room that it takes and its advantage beyond it; so a filling is worth no more than all the room and the
//! advantages of its pieces. Pieces with the largest advantage are taken first, and a branch ends where pieces that are missing, or pieces
//! that do not deserve their room, cost more than is left to gain (Dantzig, Fulkerson and Johnson 1954: fixing by reduced costs).

/// Something that may go in.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    pub position: usize,
    pub price: f64,
    /// What one piece is worth beyond the room that it takes.
    pub advantage: f64,
    /// How many of it there may be at most.
    pub most: f64,
}

/// What a search has come to.
#[derive(Clone, Debug)]
pub struct BestFilling {
    /// Of the best filling that was seen, and what it holds: positions, and how many pieces. Where none was worth enough, it holds
    /// nothing and is worth what was asked for.
    pub worth: f64,
    pub taken: Vec<(usize, f64)>,
    /// No filling is worth more.
    pub at_most: f64,
    pub steps: usize,
    /// How often it was asked whether one more of a choice goes in.
    pub looks: u64,
}

/// Of what is full to the last part, this much is the rounding of the arithmetic.
const ROUNDING: f64 = 1e-9;

/// Resources that are looked at together, as processors do.
const LANES: usize = 4;

type Lanes = [f64; LANES];

/// Choices that are worth as much as another and take no more room, so that they go in first.
#[derive(Clone, Default)]
struct Better {
    /// Of the first so many choices.
    known: Vec<usize>,
    asked: usize,
}

struct Search {
    /// Largest advantage first.
    choices: Vec<Choice>,
    /// By choice, and then by group of resources: the part of the room that one piece takes.
    parts: Vec<Lanes>,
    /// By group of resources: the part that is free.
    room: Vec<Lanes>,
    /// Positions in the order of choices.
    taken: Vec<(usize, f64)>,
    /// By choice.
    better: Vec<Better>,
    /// By choice: how many are taken.
    counts: Vec<f64>,
    best: f64,
    best_taken: Vec<(usize, f64)>,
    /// The most that a branch promised which was left alone for want of steps.
    left_alone: f64,
    steps_left: usize,
    looks: u64,
}

/// Seeks fillings that are worth more than `least` in so many steps. `parts` is by resource and position; `room` is what all the
/// room is worth. O(steps x choices x resources).
pub fn search(mut choices: Vec<Choice>, parts: &[Vec<f64>], room: f64, least: f64, steps: usize) -> BestFilling {
    choices.iter_mut().for_each(|choice| choice.most = whole(choice.most + ROUNDING));
    let at_most = room + choices.iter().map(|choice| choice.most * choice.advantage.max(0.0)).sum::<f64>();
    choices.retain(|choice| choice.most >= 1.0 && at_most + choice.advantage.min(0.0) > least);
    choices.sort_unstable_by(|one, two| two.advantage.total_cmp(&one.advantage).then(one.position.cmp(&two.position)));
    let groups = parts.len().div_ceil(LANES);
    let part = |position: usize, resource: usize| parts.get(resource).map_or(0.0, |parts| parts[position]);
    let lanes = |position: usize, group: usize| std::array::from_fn(|lane| part(position, group * LANES + lane));
    let mut search = Search {
        better: vec![Better::default(); choices.len()],
        counts: vec![0.0; choices.len()],
        parts: choices.iter().flat_map(|it| (0..groups).map(|group| lanes(it.position, group))).collect(),
        choices,
        room: vec![[1.0; LANES]; groups],
        taken: Vec::new(),
        best: least,
        best_taken: Vec::new(),
        left_alone: 0.0,
        steps_left: steps,
        looks: 0,
    };
    search.go_on(0, 0.0, at_most);
    let position = |(choice, count): &(usize, f64)| (search.choices[*choice].position, *count);
    BestFilling {
        worth: search.best,
        taken: search.best_taken.iter().map(position).collect(),
        at_most: search.best.max(search.left_alone),
        steps: steps - search.steps_left,
        looks: search.looks,
    }
}

impl Search {
    /// `at_most` is what the branch promises, when of all choices from `first` on as many are taken as deserve it.
    fn go_on(&mut self, first: usize, worth: f64, mut at_most: f64) {
        if worth > self.best {
            self.best = worth;
            self.best_taken.clone_from(&self.taken);
        }
        for choice in first..self.choices.len() {
            let Choice { price, advantage, most, .. } = self.choices[choice];
            // Advantages fall from here on: without one of the pieces left, nothing is gained; with one, this much is lost.
            if at_most + advantage.min(0.0) <= self.best {
                return;
            }
            self.looks += 1;
            let mut count = if self.has_room(choice) && !self.has_better(choice) { self.fits(choice) } else { 0.0 };
            if advantage < 0.0 {
                count = count.min(whole((at_most - self.best) / -advantage));
            }
            while count >= 1.0 {
                let promised = at_most + advantage * if advantage > 0.0 { count - most } else { count };
                if promised <= self.best {
                    // Fewer of what deserves its room promise less; of what does not, more.
                    if advantage > 0.0 {
                        break;
                    }
                } else if self.steps_left == 0 {
                    // Of what does not deserve its room, less than this may be taken later.
                    let promised = if advantage > 0.0 { promised } else { at_most };
                    self.left_alone = self.left_alone.max(promised);
                    return;
                } else {
                    self.steps_left -= 1;
                    self.take(choice, count);
                    self.taken.push((choice, count));
                    self.counts[choice] = count;
                    self.go_on(choice + 1, worth + count * price, promised);
                    self.taken.pop();
                    self.counts[choice] = 0.0;
                    self.take(choice, -count);
                }
                count -= 1.0;
            }
            at_most -= most * advantage.max(0.0);
        }
    }

    /// Whether one more of another choice would be worth as much and take no more of any resource.
    fn has_better(&mut self, choice: usize) -> bool {
        let is_left = |other: usize| self.counts[other] < self.choices[other].most;
        if self.better[choice].known.iter().any(|other| is_left(*other)) {
            return true;
        }
        while self.better[choice].asked < choice {
            let other = self.better[choice].asked;
            self.better[choice].asked += 1;
            if self.is_better(other, choice) {
                self.better[choice].known.push(other);
                if self.counts[other] < self.choices[other].most {
                    return true;
                }
            }
        }
        false
    }

    fn is_better(&self, one: usize, other: usize) -> bool {
        self.choices[one].price >= self.choices[other].price
            && self.parts(one).iter().zip(self.parts(other)).all(|(one, other)| is_within(one, other, 0.0))
    }

    fn parts(&self, choice: usize) -> &[Lanes] {
        let groups = self.room.len();
        &self.parts[choice * groups..(choice + 1) * groups]
    }

    /// Whether one more fits.
    fn has_room(&self, choice: usize) -> bool {
        self.parts(choice).iter().zip(&self.room).all(|(parts, room)| is_within(parts, room, ROUNDING))
    }

    /// How many fit where there is room for one.
    fn fits(&self, choice: usize) -> f64 {
        let ratios = self.parts(choice).iter().zip(&self.room).flat_map(|(parts, room)| {
            // What takes nothing fits without end.
            std::array::from_fn::<f64, LANES, _>(|lane| room[lane].max(ROUNDING) / parts[lane])
        });
        whole(ratios.fold(self.choices[choice].most, f64::min) + ROUNDING)
    }

    fn take(&mut self, choice: usize, count: f64) {
        let groups = self.room.len();
        let parts = &self.parts[choice * groups..(choice + 1) * groups];
        for (room, parts) in self.room.iter_mut().zip(parts) {
            room.iter_mut().zip(parts).for_each(|(room, part)| *room -= count * part);
        }
    }
}

/// Whether each amount is at most the other, and so much more.
fn is_within(amounts: &Lanes, others: &Lanes, more: f64) -> bool {
    (0..LANES).fold(true, |all, lane| all & (amounts[lane] <= others[lane] + more))
}

/// Rounds down. The processors that are built for have no instruction for it but this one.
#[expect(clippy::cast_possible_truncation, reason = "what is larger than a number of pieces can be is cut off")]
fn whole(amount: f64) -> f64 {
    f64::from(amount as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(position: usize, price: f64, most: f64) -> Choice {
        Choice { position, price, advantage: 0.0, most }
    }

    #[test]
    fn the_best_of_all_fillings_is_found() {
        // Of one resource: two thirds, a half twice, or the smallest ones.
        let parts = [vec![2.0 / 3.0, 0.5, 0.3]];
        let choices = vec![choice(0, 0.6, 1.0), choice(1, 0.4, 2.0), choice(2, 0.26, 3.0)];
        let found = search(choices, &parts, 0.95, 0.0, 1000);
        assert!((found.worth - 0.86).abs() < 1e-9 && (found.at_most - 0.86).abs() < 1e-9, "{found:?}");
        assert_eq!(found.taken, [(0, 1.0), (2, 1.0)], "{found:?}");
    }

    #[test]
    fn what_was_not_looked_at_is_no_proof() {
        let parts = [vec![0.3, 0.3, 0.3, 0.3]];
        let choices: Vec<Choice> = (0..4).map(|position| choice(position, 0.3, 1.0)).collect();
        let found = search(choices.clone(), &parts, 1.0, 0.0, 1);
        assert!(found.worth < 0.9 && found.at_most > found.worth, "{found:?}");
        let found = search(choices, &parts, 1.0, 0.0, 1000);
        assert!((found.worth - 0.9).abs() < 1e-9 && (found.at_most - 0.9).abs() < 1e-9, "{found:?}");
        assert!(found.steps < 10, "of equals only the first ones are looked at: {found:?}");
    }
}
