//! What can be wrong with a question; numerical trouble is not an error but an
//! infinite upper bound with its reason (see [`crate::Bracket`]).

/// Why an input was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter lies outside its range, or is NaN.
    #[error("{name} must be {range}, found {found}")]
    OutOfRange {
        /// Name of the parameter.
        name: &'static str,
        /// The values it may take, in words.
        range: &'static str,
        /// The value given.
        found: f64,
    },
    /// A name is not one of those known.
    #[error("unknown {what} '{found}': use one of {known}")]
    UnknownName {
        /// What the name stands for.
        what: &'static str,
        /// The name given.
        found: String,
        /// The names accepted.
        known: &'static str,
    },
    /// The accountant has no sound analysis of this event.
    #[error("{event} has no sound analysis here: {advice}")]
    Unsupported {
        /// The event in words, with the adjacency where that matters.
        event: String,
        /// What to do instead.
        advice: &'static str,
    },
    /// A count of steps passed the largest number accounted exactly.
    #[error("{found} compositions are too many to account: at most {most} are supported")]
    TooManySteps {
        /// Compositions asked for.
        found: f64,
        /// The most that are supported.
        most: u64,
    },
    /// No parameter value within the search range meets the target.
    #[error("no {parameter} in [{low:e}, {high:e}] reaches epsilon {epsilon} at delta {delta:e}")]
    Unreachable {
        /// The parameter searched for.
        parameter: &'static str,
        /// Lower end of the search range.
        low: f64,
        /// Upper end of the search range.
        high: f64,
        /// Target epsilon.
        epsilon: f64,
        /// Target delta.
        delta: f64,
    },
    /// A ledger line does not fit what stands before it.
    #[error("ledger line {line}: {problem}")]
    Ledger {
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A data set's ledger has another total than the one given.
    #[error(
        "total_epsilon {given} is not that of the data set's ledger ({}): leave it out, or use another \
         ledger for other data",
        .found.map_or("none".to_owned(), |total| total.to_string())
    )]
    OtherTotal {
        /// The total given.
        given: f64,
        /// The ledger's.
        found: Option<f64>,
    },
    /// A run would take a data set beyond its total.
    #[error(
        "with this run the data set's total would be {after}, above its limit of {total}; {runs} runs \
         have spent {spent} of it. Take fewer steps or more noise"
    )]
    TotalExceeded {
        /// The limit.
        total: f64,
        /// The claim with this run.
        after: String,
        /// ε spent so far.
        spent: String,
        /// Runs that spent it.
        runs: usize,
    },
    /// Runs of one data set protect different units.
    #[error(
        "the ledger of the data set is about one {found}, this run about one {given}; their ε do not add \
         up. Declare the same unit, or keep another ledger and state both"
    )]
    OtherUnit {
        /// What the ledger's runs protect.
        found: String,
        /// What this run protects.
        given: String,
    },
    /// Reading or writing the ledger failed.
    #[error("ledger: {0}")]
    Io(#[from] std::io::Error),
}

/// `value` if it is finite and greater than zero.
pub(crate) fn positive(name: &'static str, value: f64) -> Result<f64, Error> {
    if value.is_finite() && value > 0.0 {
        Ok(value)
    } else {
        Err(Error::OutOfRange { name, range: "finite and greater than 0", found: value })
    }
}

/// `value` if it lies in [0, 1].
pub(crate) fn probability(name: &'static str, value: f64) -> Result<f64, Error> {
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(Error::OutOfRange { name, range: "in [0, 1]", found: value })
    }
}

/// `delta` if it lies strictly between 0 and 1.
pub(crate) fn check_delta(delta: f64) -> Result<f64, Error> {
    if delta > 0.0 && delta < 1.0 {
        Ok(delta)
    } else {
        Err(Error::OutOfRange { name: "delta", range: "strictly between 0 and 1", found: delta })
    }
}

/// `epsilon` if it is finite and not negative.
pub(crate) fn check_epsilon(epsilon: f64) -> Result<f64, Error> {
    if epsilon.is_finite() && epsilon >= 0.0 {
        Ok(epsilon)
    } else {
        Err(Error::OutOfRange { name: "epsilon", range: "finite and at least 0", found: epsilon })
    }
}
