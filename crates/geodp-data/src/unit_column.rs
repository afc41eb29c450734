//! Which records of a table are of the same unit: one patient, one customer, one sensor.
//!
//! The privacy unit of a table is a row unless its schema says otherwise. Where one person has many
//! rows, the promise must cover all of them together, so training draws *units*, and N counts them. A
//! unit's identifier is needed only to put its rows together and is not kept.

use crate::{DataError, Units};

/// The unit of every record, and what a unit is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitColumn {
    name: String,
    /// Unit of each record, numbered in the order of their first records.
    unit_of: Vec<u32>,
    units: Units,
}

impl UnitColumn {
    /// Puts records together by the number of their unit; numbers may be any. `name` is what a unit
    /// is called (the column's heading), `most_rows` how many of its rows are used in a step.
    ///
    /// # Errors
    /// If `most_rows` is 0, or there are more than 2³² − 1 records.
    pub fn new(
        name: impl Into<String>,
        most_rows: usize,
        unit_of: &[u32],
    ) -> Result<Self, DataError> {
        let mut number = std::collections::HashMap::new();
        let unit_of: Vec<u32> = unit_of
            .iter()
            .map(|unit| {
                let next = number.len() as u32;
                *number.entry(*unit).or_insert(next)
            })
            .collect();
        let units = Units::new(&unit_of, most_rows)?;
        Ok(UnitColumn { name: name.into(), unit_of, units })
    }

    /// What a unit is called: the heading of its column.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The rows of every unit.
    pub fn units(&self) -> &Units {
        &self.units
    }

    /// Unit of every record.
    pub(crate) fn all(&self) -> &[u32] {
        &self.unit_of
    }

    /// The units of some of the records, in their order.
    pub(crate) fn subset(&self, indices: &[usize]) -> Result<Self, DataError> {
        let unit_of: Vec<u32> = indices.iter().map(|&index| self.unit_of[index]).collect();
        UnitColumn::new(self.name.clone(), self.units.most_rows(), &unit_of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_put_together_in_order() {
        let column = UnitColumn::new("patient", 3, &[7, 2, 7, 7, 9, 2]).unwrap();
        let units = column.units();
        assert_eq!((units.len(), column.name(), units.most_rows()), (3, "patient", 3));
        let found: Vec<&[u32]> = (0..3).map(|unit| units.rows(unit)).collect();
        assert_eq!(found, [&[0, 2, 3][..], &[1, 5], &[4]]);
        let some = column.subset(&[5, 4, 1]).unwrap();
        assert_eq!((some.units().len(), some.units().rows(0)), (2, &[0, 2][..]));
        assert!(UnitColumn::new("x", 0, &[1]).is_err());
        assert!(UnitColumn::new("x", 1, &[]).unwrap().units().is_empty());
    }
}
