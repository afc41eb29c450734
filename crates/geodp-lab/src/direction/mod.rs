//! Figures 1, 3 and 4: how far DP and GeoDP move directions and gradients, at equal σ, B and C.
//!
//! A cell is one group of gradients ([`measure`]) with ten perturbations of every mean; ten groups
//! make the paper's 100 repeats. Points pool the repeats of all finished groups. Certified GeoDP is an
//! addition, in cells of its own on the same means ([`certified`]).

pub mod certified;
mod draw;
pub mod measure;
pub mod panels;

use crate::Error;
use crate::experiment::{Cell, CellContext, Drawn, Experiment, FinishedOf, PageContext};
use crate::options::{Options, Size};
use certified::{CertifiedErrors, CertifiedGroup};
use geodp_data::Dataset;
use measure::{Effort, Errors, Group};
use panels::{Panel, Point};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::cell::OnceCell;
use std::path::Path;

/// Figure 1, 3 or 4.
#[derive(Debug)]
pub struct Direction {
    id: &'static str,
    title: &'static str,
    panels: Vec<Panel>,
    records: OnceCell<Dataset>,
}

/// One piece of work: which mechanisms, on which group of gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// The paper's two.
    Paper(u64),
    /// Certified GeoDP.
    Certified(u64),
}

/// What a job found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Found {
    /// Of [`Job::Paper`].
    Paper(Group),
    /// Of [`Job::Certified`].
    Certified(CertifiedGroup),
}

impl Direction {
    fn new(id: &'static str, title: &'static str, panels: Vec<Panel>) -> Self {
        Self { id, title, panels, records: OnceCell::new() }
    }

    fn records(&self, data_dir: &Path) -> Result<&Dataset, Error> {
        if let Some(records) = self.records.get() {
            return Ok(records);
        }
        let records = measure::records(data_dir)?;
        Ok(self.records.get_or_init(|| records))
    }

    /// Figure 1.
    pub fn figure1() -> Self {
        let title = "Figure 1: errors of directions and of gradients";
        Self::new("fig1", title, panels::figure1())
    }

    /// Figure 3.
    pub fn figure3() -> Self {
        let title = "Figure 3: direction errors over σ, d and B";
        Self::new("fig3", title, panels::figure3())
    }

    /// Figure 4.
    pub fn figure4() -> Self {
        let title = "Figure 4: the bounding factor β";
        Self::new("fig4", title, panels::figure4())
    }

    /// Its plots.
    pub fn panels(&self) -> &[Panel] {
        &self.panels
    }

    fn effort(size: Size, seed: u64) -> Effort {
        // Small forms: means of fewer gradients; the noise stays that of the full B.
        match size {
            Size::Full => Effort { repeats: 10, divide: 1, seed },
            Size::Quick => Effort { repeats: 10, divide: 4, seed },
            Size::Tiny => Effort { repeats: 2, divide: 512, seed },
        }
    }

    fn groups(size: Size) -> u64 {
        if size == Size::Full { 10 } else { 2 }
    }

    fn points(&self) -> Vec<Point> {
        self.panels.iter().flat_map(|panel| panel.points.iter().copied()).collect()
    }

    /// The pooled repeats of every point, by panel, and the data set's name; `None` if no group is
    /// finished.
    pub fn pooled(&self, finished: &FinishedOf<Self>) -> Option<Pooled> {
        let mut groups = finished.results().filter_map(|found| match found {
            Found::Paper(group) => Some(group),
            Found::Certified(_) => None,
        });
        let Group { dataset, whole_dim, errors } = groups.next()?.clone();
        let mut pooled = Pooled {
            dataset,
            whole_dim,
            groups: 1,
            errors,
            certified: Vec::new(),
            not_drawn: None,
        };
        groups.for_each(|group| pooled.add(group));
        // Groups differ by more than mechanisms do: all of them, or no comparison.
        let (certified, elsewhere): (Vec<&CertifiedGroup>, Vec<&CertifiedGroup>) = finished
            .results()
            .filter_map(|found| match found {
                Found::Certified(group) => Some(group),
                Found::Paper(_) => None,
            })
            .partition(|group| group.dataset == pooled.dataset);
        if certified.len() as u64 == pooled.groups {
            pooled.certified = certified::pooled(certified);
        } else {
            pooled.not_drawn = not_drawn(&pooled, certified.len(), &elsewhere);
        }
        Some(pooled.finished())
    }
}

/// All finished groups together.
#[derive(Debug, Clone, PartialEq)]
pub struct Pooled {
    /// Where the gradients came from.
    pub dataset: String,
    /// Dimensions of a whole gradient.
    pub whole_dim: usize,
    /// Groups finished.
    pub groups: u64,
    /// One entry per point, in the order of the panels.
    pub errors: Vec<Errors>,
    /// Certified GeoDP's errors at each (d, B, σ), once they are measured on the same groups.
    pub certified: Vec<CertifiedErrors>,
    /// Why finished cells of certified GeoDP are not drawn, if so.
    pub not_drawn: Option<String>,
}

/// Says which groups certified GeoDP lacks, and what to do about cells of other data.
fn not_drawn(pooled: &Pooled, same: usize, elsewhere: &[&CertifiedGroup]) -> Option<String> {
    let other = elsewhere.first().map(|group| {
        format!(
            " {} of its cells are of {}: delete them and run again with --data, the folder of {}.",
            elsewhere.len(),
            group.dataset,
            pooled.dataset
        )
    });
    (same > 0 || other.is_some()).then(|| {
        let Pooled { groups, dataset, .. } = pooled;
        let missing = format!(
            "Certified GeoDP is not drawn: it is measured on {same} of {groups} groups of {dataset}."
        );
        missing + &other.unwrap_or_default()
    })
}

impl Pooled {
    /// Certified GeoDP's errors at a point; it has no β.
    pub fn certified_at(&self, point: &Point) -> Option<&CertifiedErrors> {
        self.certified.iter().find(|errors| errors.point.is_at(point))
    }

    fn add(&mut self, group: &Group) {
        for (all, more) in self.errors.iter_mut().zip(&group.errors) {
            all.dp_direction.extend(&more.dp_direction);
            all.geodp_direction.extend(&more.geodp_direction);
            all.dp_gradient.extend(&more.dp_gradient);
            all.geodp_gradient.extend(&more.geodp_gradient);
            // Expected values are means over groups: sums here, divided in `finished`.
            all.dp_theory += more.dp_theory;
            all.geodp_theory += more.geodp_theory;
            all.crossing_beta += more.crossing_beta;
        }
        self.groups += 1;
    }

    fn finished(mut self) -> Self {
        for errors in &mut self.errors {
            errors.dp_theory /= self.groups as f64;
            errors.geodp_theory /= self.groups as f64;
            errors.crossing_beta /= self.groups as f64;
        }
        self
    }
}

impl Experiment for Direction {
    type Job = Job;
    type Result = Found;

    fn id(&self) -> &'static str {
        self.id
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn jobs(&self, options: &Options) -> Vec<Job> {
        let groups = 0..Self::groups(options.size);
        groups.clone().map(Job::Paper).chain(groups.map(Job::Certified)).collect()
    }

    fn cell(&self, job: &Job, options: &Options) -> Cell {
        let points = self.points();
        let longest = points.iter().map(|p| p.batch).max().unwrap_or(0) as f64;
        let (Job::Paper(group) | Job::Certified(group)) = *job;
        let effort = Self::effort(options.size, group);
        let mut config = json!({
            "points": points,
            "repeats": effort.repeats,
            "clip_norm": measure::CLIP_NORM,
            "gradients_divided_by": effort.divide,
        });
        let mut key = format!("group{group}");
        let mut coordinates: usize = points.iter().map(|p| p.dim).sum();
        if let Job::Certified(_) = job {
            let points = certified::points(&points);
            coordinates = points.iter().map(|p| p.dim).sum();
            config["points"] = json!(points);
            config["margin"] = json!(certified::MARGIN);
            key = format!("certified-{key}");
        }
        let perturbed = coordinates as f64 * effort.repeats as f64;
        let expected_seconds = longest / effort.divide as f64 / 2500.0 + perturbed / 8e6;
        Cell { key, config, seed: group, expected_seconds }
    }

    fn run(&self, job: &Job, context: &mut CellContext<'_>) -> Result<Found, Error> {
        let (Job::Paper(group) | Job::Certified(group)) = *job;
        let effort = Self::effort(context.options.size, group);
        let records = self.records(&context.options.data_dir)?;
        let (points, mut tick) = (self.points(), |share: f64| context.tick(share));
        Ok(match job {
            Job::Paper(_) => Found::Paper(measure::measure(&points, effort, records, &mut tick)?),
            Job::Certified(_) => {
                Found::Certified(certified::measure(&points, effort, records, &mut tick)?)
            }
        })
    }

    fn draw(&self, finished: &FinishedOf<Self>, _: &PageContext<'_>) -> Result<Drawn, Error> {
        Ok(draw::draw(self, finished))
    }
}
