//! Units of privacy: which rows belong together because one person stands behind them.
//!
//! A training set has one row for each unit unless it says otherwise. Where it has a map, N counts
//! units, a batch is of units, and a unit's gradient is the mean over its rows: at most `most_rows` of
//! them in a step, chosen anew in each. Which ones is a function of (choice, unit) alone, never of what
//! the rows hold or who else is in the batch, so that a unit's contribution depends on the unit alone.
//! Nothing is claimed for the choice (no amplification), so an ordinary generator makes it.
//!
//! Two uses: the views of one record ([`ViewSpec`](crate::ViewSpec)), and all rows of one user.

use geodp_nn::SplitMix64;

use crate::DataError;

/// Rows by unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Units {
    /// `rows[starts[u]..starts[u + 1]]` belong to unit u.
    starts: Vec<u32>,
    rows: Vec<u32>,
    most_rows: usize,
}

impl Units {
    /// Unit `unit_of_row[r]` owns row r. Units are numbered from 0 without gaps; a step uses at most
    /// `most_rows` rows of each.
    ///
    /// # Errors
    /// A gap in the numbers (a unit without rows), `most_rows` of 0, or 2³² rows and more.
    pub fn new(unit_of_row: &[u32], most_rows: usize) -> Result<Self, DataError> {
        let refuse = |reason: String| Err(DataError::Argument(reason));
        if most_rows == 0 {
            return refuse("0 rows of a unit a step: it must be at least 1".to_owned());
        }
        if u32::try_from(unit_of_row.len()).is_err() {
            return refuse(format!("{} rows are more than 2³² − 1", unit_of_row.len()));
        }
        let units = unit_of_row.iter().max().map_or(0, |&last| last as usize + 1);
        if units > unit_of_row.len() {
            return refuse(format!("{units} units of {} rows: some have none", unit_of_row.len()));
        }
        let mut starts = vec![0u32; units + 1];
        unit_of_row.iter().for_each(|&unit| starts[unit as usize + 1] += 1);
        if let Some(unit) = starts[1..].iter().position(|&rows| rows == 0) {
            return refuse(format!("unit {unit} has no rows; number units without gaps"));
        }
        for unit in 0..units {
            starts[unit + 1] += starts[unit];
        }
        let (mut next, mut rows) = (starts.clone(), vec![0; unit_of_row.len()]);
        for (row, &unit) in (0u32..).zip(unit_of_row) {
            rows[next[unit as usize] as usize] = row;
            next[unit as usize] += 1;
        }
        Ok(Units { starts, rows, most_rows })
    }

    /// `units` units of `rows_each` rows in a row: rows u·`rows_each` … of unit u.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn even(units: usize, rows_each: usize, most_rows: usize) -> Result<Self, DataError> {
        let all = (0..units as u32).flat_map(|unit| std::iter::repeat_n(unit, rows_each));
        Self::new(&all.collect::<Vec<u32>>(), most_rows)
    }

    /// How many units there are: N.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many rows all units have together.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Rows of a unit that a step uses at most.
    pub fn most_rows(&self) -> usize {
        self.most_rows
    }

    /// All rows of a unit, in ascending order.
    ///
    /// # Panics
    /// If `unit` is not below [`len`](Self::len).
    pub fn rows(&self, unit: u32) -> &[u32] {
        let unit = unit as usize;
        &self.rows[self.starts[unit] as usize..self.starts[unit + 1] as usize]
    }

    /// Adds the rows of `unit` that the step of `choice` uses to `chosen`: all, or `most_rows`
    /// different ones, every set of them equally likely. Which ones depends on `choice` and on `number`,
    /// the unit's number among all units wherever they are.
    ///
    /// # Panics
    /// If `unit` is not below [`len`](Self::len).
    pub fn choose(&self, unit: u32, number: u32, choice: u64, chosen: &mut Vec<u32>) {
        let (rows, first) = (self.rows(unit), chosen.len());
        chosen.extend_from_slice(rows);
        if rows.len() <= self.most_rows {
            return;
        }
        let mut generator = SplitMix64::new(choice);
        // Far apart for neighbouring units.
        let mut generator = SplitMix64::new(generator.next_u64() ^ u64::from(number) << 32);
        let own = &mut chosen[first..];
        for at in 0..self.most_rows {
            own.swap(at, at + generator.below(own.len() - at));
        }
        chosen.truncate(first + self.most_rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(units: &Units, unit: u32, choice: u64) -> Vec<u32> {
        let mut chosen = Vec::new();
        units.choose(unit, unit, choice, &mut chosen);
        chosen
    }

    #[test]
    fn rows_go_to_their_units() {
        let units = Units::new(&[1, 0, 1, 2, 1], 2).unwrap();
        assert_eq!((units.len(), units.row_count(), units.is_empty()), (3, 5, false));
        assert_eq!(
            [0, 1, 2].map(|unit| units.rows(unit).to_vec()),
            [vec![1], vec![0, 2, 4], vec![3]]
        );
        let even = Units::even(3, 2, 1).unwrap();
        assert_eq!(even.rows(2), [4, 5]);
    }

    #[test]
    fn gaps_are_refused() {
        assert!(Units::new(&[0, 2, 2], 1).unwrap_err().to_string().contains("unit 1 has no rows"));
        assert!(Units::new(&[7], 1).is_err());
        assert!(Units::new(&[0], 0).is_err());
        assert!(Units::new(&[], 1).unwrap().is_empty());
    }

    /// 30,000 choices of 2 of 3 rows: each pair 10,000 ± 82; 6 standard deviations, false alarm below
    /// 1e-8. A choice is the same whenever it is made, and units choose apart.
    #[test]
    fn every_choice_of_rows_is_as_likely_and_repeatable() {
        let units = Units::even(2, 3, 2).unwrap();
        let (mut counts, mut alike) = ([0i32; 3], 0);
        for choice in 0..30_000 {
            let rows = chosen(&units, 0, choice);
            assert!(rows.len() == 2 && rows[0] != rows[1] && rows.iter().all(|row| *row < 3));
            assert_eq!(rows, chosen(&units, 0, choice));
            counts[3 - rows.iter().sum::<u32>() as usize] += 1;
            let other: u32 = chosen(&units, 1, choice).iter().map(|row| row - 3).sum();
            alike += i32::from(other == rows.iter().sum::<u32>());
        }
        assert!(counts.iter().all(|count| (count - 10_000).abs() < 490), "{counts:?}");
        assert!((alike - 10_000).abs() < 490, "two units choose the same pair {alike} times");
    }

    #[test]
    fn few_rows_are_all_used() {
        let units = Units::new(&[0, 0, 1], 2).unwrap();
        assert_eq!((chosen(&units, 0, 5), chosen(&units, 1, 5)), (vec![0, 1], vec![2]));
    }
}
