//! The linear program of covering a demand with columns, solved by the revised simplex method.
//!
//! Minimise the price of the columns taken, such that each row gets at least what it demands; a row that takes away demands a
//! negative amount, which is the most that may be taken. Written by hand, since the columns
//! come while it is being solved, which libraries that count their work know for rows only. The inverse of the basis is kept
//! whole: there are some hundreds of rows, one for each size of piece and zone. Which column enters is chosen by reference weights
//! (Devex, Harris 1973), for a quarter of the pivots that the largest saving takes.
//! O(rows^2 + entries of the columns) for each pivot.

use super::number;

/// Something to buy: its price, and how much of which rows it brings.
#[derive(Clone, Debug)]
pub struct Column {
    pub price: f64,
    pub entries: Vec<(usize, f64)>,
}

/// A column is worth taking when it saves more than this part of its price.
const SAVING_MIN: f64 = 1e-7;

/// Smaller numbers are taken for the rounding of zero.
const ZERO: f64 = 1e-9;

/// Demands are larger by up to this much, each by another part of it, or the method would go round in circles where several rows
/// are met at the same time (Charnes 1952).
const PERTURBATION: f64 = 1e-4;

/// Weights are set back when one has grown beyond this: they no longer say how far a column leads.
const WEIGHT_MAX: f64 = 1e8;

/// A variable: as much of a column as costs one unit, or all of it where it is free, or what a row gets beyond its demand.
#[derive(Clone, Debug)]
struct Variable {
    price: f64,
    /// How much of the column one of it is.
    part: f64,
    entries: Vec<(usize, f64)>,
    /// What one unit of it would save, less what it costs; 0 in the basis.
    saving: f64,
    weight: f64,
    is_basic: bool,
}

impl Variable {
    fn new(price: f64, part: f64, entries: Vec<(usize, f64)>) -> Self {
        Self { price, part, entries, saving: 0.0, weight: 1.0, is_basic: false }
    }
}

pub struct Covering {
    rows: usize,
    /// One for the surplus of each row, then one for each column.
    variables: Vec<Variable>,
    /// By row of the basis: positions of variables.
    basis: Vec<usize>,
    /// By row of the demand, and then by row of the basis.
    inverse: Vec<Vec<f64>>,
    /// By row of the basis.
    amounts: Vec<f64>,
}

impl Covering {
    /// Begins with columns of which each covers the row of its position, alone; a row without one demands less than nothing.
    pub fn new(demand: &[f64], alone: &[Option<Column>]) -> Self {
        let rows = demand.len();
        let surplus = |row: usize| {
            let unit = alone[row].as_ref().map_or(1.0, |column| column.price / column.entries[0].1);
            Variable::new(0.0, 1.0, vec![(row, -1.0 / unit)])
        };
        let mut program = Self {
            rows,
            variables: (0..rows).map(surplus).collect(),
            basis: Vec::with_capacity(rows),
            inverse: vec![vec![0.0; rows]; rows],
            amounts: Vec::with_capacity(rows),
        };
        for (row, column) in alone.iter().enumerate() {
            if let Some(column) = column {
                program.add(column);
            }
            let position = if column.is_some() { program.variables.len() - 1 } else { row };
            program.variables[position].is_basic = true;
            program.basis.push(position);
            let brought = program.variables[position].entries[0].1;
            program.inverse[row][row] = 1.0 / brought;
            // The golden ratio spreads parts evenly, whatever their number.
            let part = (number(row) * 0.618_033_988_749_895).fract();
            program.amounts.push((demand[row] + PERTURBATION * (1.0 + part)) / brought);
        }
        program
    }

    pub fn add(&mut self, column: &Column) {
        let (price, part) = if column.price > 0.0 { (1.0, 1.0 / column.price) } else { (0.0, 1.0) };
        let entries = column.entries.iter().map(|(row, amount)| (*row, amount * part)).collect();
        self.variables.push(Variable::new(price, part, entries));
    }

    /// By row: what one more of it costs. Columns that are worth more than their price are worth adding.
    pub fn prices(&self) -> Vec<f64> {
        let costs: Vec<f64> = self.basis.iter().map(|variable| self.variables[*variable].price).collect();
        let price = |column: &Vec<f64>| column.iter().zip(&costs).map(|(value, cost)| value * cost).sum();
        self.inverse.iter().map(price).collect()
    }

    /// Positions of the columns taken, in the order in which they were added, and how often each is.
    pub fn taken(&self) -> Vec<(usize, f64)> {
        let in_basis = self.basis.iter().zip(&self.amounts).filter(|(_, amount)| **amount > ZERO);
        let mut taken: Vec<(usize, f64)> = in_basis
            .filter_map(|(variable, amount)| {
                Some((variable.checked_sub(self.rows)?, amount * self.variables[*variable].part))
            })
            .collect();
        taken.sort_unstable_by_key(|(column, _)| *column);
        taken
    }

    /// Takes columns until none saves anything, or the work is spent. `work` counts multiplications.
    pub fn solve(&mut self, work: &mut u64) {
        self.appraise();
        let entries: usize = self.variables.iter().map(|variable| variable.entries.len()).sum();
        let of_a_pivot = (self.rows * self.rows + 2 * entries) as u64;
        while *work > 0 {
            *work = work.saturating_sub(of_a_pivot);
            let Some(entering) = self.entering() else { return };
            if !self.pivot(entering) {
                return;
            }
        }
    }

    /// What each variable would save, from scratch.
    fn appraise(&mut self) {
        let prices = self.prices();
        for variable in &mut self.variables {
            let worth: f64 = variable.entries.iter().map(|(row, amount)| prices[*row] * amount).sum();
            variable.saving = if variable.is_basic { 0.0 } else { worth - variable.price };
            variable.weight = 1.0;
        }
    }

    fn entering(&self) -> Option<usize> {
        let mut best = (0.0, None);
        for (position, variable) in self.variables.iter().enumerate() {
            if variable.saving > SAVING_MIN {
                let score = variable.saving * variable.saving / variable.weight;
                if score > best.0 {
                    best = (score, Some(position));
                }
            }
        }
        best.1
    }

    /// False where the entering column could be taken without end, which positive prices rule out but for rounding.
    fn pivot(&mut self, entering: usize) -> bool {
        let direction = self.direction(entering);
        let Some((leaving, ratio)) = self.leaving(&direction) else { return false };
        for (amount, step) in self.amounts.iter_mut().zip(&direction) {
            *amount -= ratio * step;
        }
        self.amounts[leaving] = ratio;
        self.reappraise(entering, leaving, direction[leaving]);
        for column in &mut self.inverse {
            let part = column[leaving] / direction[leaving];
            if part != 0.0 {
                for (value, step) in column.iter_mut().zip(&direction) {
                    *value -= part * step;
                }
                column[leaving] = part;
            }
        }
        self.basis[leaving] = entering;
        true
    }

    /// The row of the basis that is used up first, and after how much of the entering variable.
    fn leaving(&self, direction: &[f64]) -> Option<(usize, f64)> {
        let mut leaving: Option<(usize, f64)> = None;
        for (row, step) in direction.iter().enumerate().filter(|(_, step)| **step > ZERO) {
            let ratio = self.amounts[row].max(0.0) / step;
            // Of equals the larger step, for the sake of the arithmetic.
            let is_less = |(best, least): (usize, f64)| {
                ratio < least - ZERO || (ratio <= least + ZERO && *step > direction[best])
            };
            if leaving.is_none_or(is_less) {
                leaving = Some((row, ratio));
            }
        }
        leaving
    }

    /// Savings and weights after a pivot, from those before it.
    fn reappraise(&mut self, entering: usize, leaving: usize, step: f64) {
        let row: Vec<f64> = self.inverse.iter().map(|column| column[leaving]).collect();
        let (saving, weight) = (self.variables[entering].saving, self.variables[entering].weight);
        let part = saving / step;
        let mut heaviest: f64 = 1.0;
        for variable in self.variables.iter_mut().filter(|variable| !variable.is_basic) {
            let alpha: f64 = variable.entries.iter().map(|(demanded, amount)| row[*demanded] * amount).sum();
            if alpha != 0.0 {
                variable.saving -= part * alpha;
                let lead = alpha / step;
                variable.weight = variable.weight.max(lead * lead * weight);
                heaviest = heaviest.max(variable.weight);
            }
        }
        let leaver = &mut self.variables[self.basis[leaving]];
        leaver.is_basic = false;
        leaver.saving = -part;
        leaver.weight = (weight / (step * step)).max(1.0);
        let enterer = &mut self.variables[entering];
        enterer.is_basic = true;
        enterer.saving = 0.0;
        if heaviest > WEIGHT_MAX {
            self.variables.iter_mut().for_each(|variable| variable.weight = 1.0);
        }
    }

    /// By row of the basis, what one unit of a variable takes the place of.
    fn direction(&self, entering: usize) -> Vec<f64> {
        let mut direction = vec![0.0; self.rows];
        for (row, amount) in &self.variables[entering].entries {
            for (sum, value) in direction.iter_mut().zip(&self.inverse[*row]) {
                *sum += amount * value;
            }
        }
        direction
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(price: f64, entries: &[(usize, f64)]) -> Column {
        Column { price, entries: entries.to_vec() }
    }

    fn spent(program: &Covering, prices: &[f64]) -> f64 {
        program.taken().iter().map(|(column, amount)| amount * prices[*column]).sum()
    }

    #[test]
    fn the_cheapest_cover_is_found() {
        let alone = [column(1.0, &[(0, 1.0)]), column(1.0, &[(1, 1.0)])].map(Some);
        let mut program = Covering::new(&[10.0, 4.0], &alone);
        program.solve(&mut 1_000_000);
        assert!((spent(&program, &[1.0, 1.0]) - 14.0).abs() < 1e-2, "{:?}", program.taken());
        // Five of these cover both, the second row with one to spare.
        program.add(&column(1.5, &[(0, 2.0), (1, 1.0)]));
        program.solve(&mut 1_000_000);
        assert!((spent(&program, &[1.0, 1.0, 1.5]) - 7.5).abs() < 1e-2, "{:?}", program.taken());
        let prices = program.prices();
        assert!((prices[0] - 0.75).abs() < 1e-6 && prices[1].abs() < 1e-6, "{prices:?}");
    }

    #[test]
    fn work_that_is_spent_leaves_a_cover() {
        let alone = [column(3.0, &[(0, 1.0)]), column(3.0, &[(1, 1.0)])].map(Some);
        let mut program = Covering::new(&[5.0, 1.0], &alone);
        program.add(&column(1.0, &[(0, 1.0), (1, 1.0)]));
        program.solve(&mut 0);
        assert!((spent(&program, &[3.0, 3.0, 1.0]) - 18.0).abs() < 1e-2, "{:?}", program.taken());
        program.solve(&mut 1_000_000);
        assert!((spent(&program, &[3.0, 3.0, 1.0]) - 5.0).abs() < 1e-2, "{:?}", program.taken());
    }

    #[test]
    fn of_a_row_that_takes_away_there_is_so_much_and_no_more() {
        // Free, but only three of them.
        let mut program = Covering::new(&[10.0, -3.0], &[Some(column(1.0, &[(0, 1.0)])), None]);
        program.add(&column(0.0, &[(0, 2.0), (1, -1.0)]));
        program.solve(&mut 1_000_000);
        assert!((spent(&program, &[1.0, 0.0]) - 4.0).abs() < 1e-2, "{:?}", program.taken());
        let prices = program.prices();
        assert!((prices[0] - 1.0).abs() < 1e-6 && (prices[1] - 2.0).abs() < 1e-6, "{prices:?}");
    }
}
