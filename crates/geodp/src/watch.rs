//! Looking at a training, in two ways and no third.
//!
//! An [`Observer`] hears how it goes on: for progress bars. A [`Watch`] looks at every step before its
//! noise: for measurements by the data's owner. Everything in a [`StepView`] is private, and nothing
//! either does can change a step. [`Silent`] is both, and does not look.

use crate::Error;
use crate::engine::{Engine, WeightOf};
use crate::plan::Plan;
use crate::run::BlockMetrics;
use crate::statement::Statement;
use geodp_mechanism::Spread;
use geodp_report::Section;

/// Hears how a run goes on. All methods have empty defaults.
pub trait Observer {
    /// After every step.
    fn on_step(&mut self, _progress: &Progress) {}
    /// After every block, with everything measured.
    fn on_block(&mut self, _metrics: &BlockMetrics) {}
    /// Something the user should read.
    fn on_warning(&mut self, _message: &str) {}
}

/// Where a run stands within a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Steps done.
    pub step: u64,
    /// Steps of the plan.
    pub steps: u64,
    /// Records used in this step.
    pub records: usize,
    /// Mean training loss of this step's records (private), if there were any.
    pub loss: Option<f64>,
}

/// A step between its clipped sum and its noise. Private: computed on the records as they are.
#[non_exhaustive]
pub struct StepView<'a> {
    /// Number of the step, from 0.
    pub step: u64,
    /// The plan.
    pub plan: &'a Plan,
    /// The model over its records.
    pub engine: &'a dyn Engine,
    /// Weights before the step.
    pub weights: &'a [f32],
    /// The records whose gradients were summed.
    pub batch: &'a [u32],
    /// (Σ w_i·g_i)/B before the noise.
    pub mean: &'a [f32],
    /// w_i of the record at a place in `batch`, given its gradient's norm.
    pub weight_of: WeightOf<'a>,
    /// What bounds every w_i·‖g_i‖; 0 without clipping. The noise is scaled by it.
    pub sensitivity: f64,
    /// B of this step: the denominator of `mean` and of the noise.
    pub denominator: u64,
    /// How wide the noise will be that is added to `mean`; `None` without privacy.
    pub spread: Option<Spread>,
}

/// Looks at the steps of a training.
///
/// A watch that knows something after a step gives it as text: a run keeps the text beside its
/// checkpoints, so that a killed and resumed run shows every step to its watch exactly once.
pub trait Watch {
    /// Called for every step, before its noise is added.
    ///
    /// # Errors
    /// Whatever stops the measurement; it stops the training as well.
    fn on_step(&mut self, view: &StepView<'_>) -> Result<(), Error>;

    /// Everything it knows, as text; `None` if it has nothing to keep.
    ///
    /// # Errors
    /// If it cannot be written as text.
    fn save(&self) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// Goes back to a state it gave.
    ///
    /// # Errors
    /// What is wrong with the text.
    fn restore(&mut self, _state: &str) -> Result<(), Error> {
        Err(Error::Plan("this watch keeps nothing, so it cannot go back to anything".to_owned()))
    }

    /// What it found in a run that is done; `None` if there is nothing to say.
    ///
    /// # Errors
    /// If the findings cannot be computed.
    fn findings(&self, _plan: &Plan, _statement: &Statement) -> Result<Option<Findings>, Error> {
        Ok(None)
    }
}

/// What a watch found. Private: for the data's owner.
#[derive(Debug, Clone)]
pub struct Findings {
    /// The text of `measured.json`.
    pub json: String,
    /// The section of the report page.
    pub section: Section,
}

/// Neither hears nor looks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {}

impl Watch for Silent {
    fn on_step(&mut self, _view: &StepView<'_>) -> Result<(), Error> {
        Ok(())
    }
}

/// Looks if it is there.
impl<W: Watch> Watch for Option<W> {
    fn on_step(&mut self, view: &StepView<'_>) -> Result<(), Error> {
        self.as_mut().map_or(Ok(()), |watch| watch.on_step(view))
    }

    fn save(&self) -> Result<Option<String>, Error> {
        self.as_ref().map_or(Ok(None), Watch::save)
    }

    fn restore(&mut self, state: &str) -> Result<(), Error> {
        match self {
            Some(watch) => watch.restore(state),
            None => Silent.restore(state),
        }
    }

    fn findings(&self, plan: &Plan, statement: &Statement) -> Result<Option<Findings>, Error> {
        self.as_ref().map_or(Ok(None), |watch| watch.findings(plan, statement))
    }
}
