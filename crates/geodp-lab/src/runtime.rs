//! Figure 6: how long a perturbation takes, DP beside GeoDP, over d and B.
//!
//! Each cell perturbs the same 500 random gradients of one size by DP and by GeoDP in turn, so that
//! both meet the machine in the same state, and keeps the median time of a perturbation. All threads are
//! awake when the clock starts, as they are after a gradient: who came first would wake them for the other.
//! B only scales the noise; it is varied because the paper varies it.

use crate::Error;
use crate::experiment::{Cell, CellContext, Drawn, Experiment, FinishedOf, PageContext};
use crate::options::{Options, Size};
use geodp_mechanism::{Clip, Gaussian, Geometric, NoiseSource, Perturb, Purpose};
use geodp_report::{Axis, Chart, Role, Series, csv, format};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Instant;

/// Figure 6.
#[derive(Debug, Default)]
pub struct Runtime;

/// One size to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Measurement {
    /// d.
    pub dim: usize,
    /// B.
    pub batch: u64,
    /// Perturbations of each mechanism.
    pub gradients: u64,
}

/// What was found: microseconds per perturbation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// d.
    pub dim: usize,
    /// B.
    pub batch: u64,
    /// Median of DP.
    pub dp_microseconds: f64,
    /// Median of GeoDP.
    pub geodp_microseconds: f64,
    /// Perturbations of each.
    pub gradients: u64,
}

impl Times {
    /// GeoDP over DP.
    pub fn ratio(&self) -> f64 {
        self.geodp_microseconds / self.dp_microseconds
    }
}

const DIMS: [usize; 9] = [1250, 2500, 5000, 10_000, 20_000, 40_000, 80_000, 160_000, 320_000];
const BATCHES: [u64; 3] = [512, 2048, 8192];

fn measure(
    Measurement { dim, batch, gradients }: Measurement,
    tick: &mut dyn FnMut(f64) -> Result<(), Error>,
) -> Result<Times, Error> {
    let sensitivity = Clip::flat(0.1)?.sensitivity();
    let dp = Gaussian::new(sensitivity, 1.0, batch)?;
    let geodp = Geometric::new(sensitivity, 1.0, batch, 0.1)?;
    let noise = NoiseSource::from_seed(dim as u64);
    let mut normals = vec![0.0; dim];
    let (mut dp_times, mut geodp_times) = (Vec::new(), Vec::new());
    for number in 0..gradients {
        noise.stream(Purpose::Audit, number, 0)?.fill_normals(&mut normals);
        let scale = 0.1 / (dim as f64).sqrt();
        let gradient: Vec<f32> = normals.iter().map(|n| (scale * n) as f32).collect();
        let time = |mechanism: &dyn Perturb<f32>| {
            let mut release = gradient.clone();
            rayon::broadcast(|_| ());
            let started = Instant::now();
            mechanism.perturb_in_place(&mut release, &noise, number)?;
            Ok::<f64, Error>(started.elapsed().as_secs_f64() * 1e6)
        };
        dp_times.push(time(&dp)?);
        geodp_times.push(time(&geodp)?);
        tick(number as f64 / gradients as f64)?;
    }
    Ok(Times {
        dim,
        batch,
        dp_microseconds: crate::stats::median(&dp_times),
        geodp_microseconds: crate::stats::median(&geodp_times),
        gradients,
    })
}

impl Experiment for Runtime {
    type Job = Measurement;
    type Result = Times;

    fn id(&self) -> &'static str {
        "fig6"
    }

    fn title(&self) -> &'static str {
        "Figure 6: time of a perturbation"
    }

    fn jobs(&self, options: &Options) -> Vec<Measurement> {
        let gradients = if options.size == Size::Tiny { 3 } else { 500 };
        let all = BATCHES.into_iter().flat_map(|b| DIMS.into_iter().map(move |d| (d, b)));
        all.map(|(dim, batch)| Measurement { dim, batch, gradients }).collect()
    }

    fn cell(&self, job: &Measurement, _: &Options) -> Cell {
        Cell {
            key: format!("d{}-b{}", job.dim, job.batch),
            config: json!(job),
            seed: job.dim as u64,
            expected_seconds: job.gradients as f64 * job.dim as f64 * 2.5e-8,
        }
    }

    fn run(&self, job: &Measurement, context: &mut CellContext<'_>) -> Result<Times, Error> {
        measure(*job, &mut |share| context.tick(share))
    }

    fn draw(&self, finished: &FinishedOf<Self>, _: &PageContext<'_>) -> Result<Drawn, Error> {
        let times: Vec<Times> = finished.results().copied().collect();
        let mut drawn = Drawn::new(self.title());
        let chart = |title: &str, y: Axis| Chart::new(title, Axis::log("dimensions d"), y);
        let mut absolute =
            chart("6: time of one perturbation", Axis::log("median time").unit("µs"));
        let most = times.iter().map(Times::ratio).fold(2.0, f64::max);
        let mut relative =
            chart("6: GeoDP’s time over DP’s", Axis::linear("ratio").range(0.0, most));
        for batch in BATCHES {
            let own: Vec<&Times> = times.iter().filter(|t| t.batch == batch).collect();
            let line = |name: String, role, pick: fn(&Times) -> f64| {
                let points: Vec<(f64, f64)> = own.iter().map(|t| (t.dim as f64, pick(t))).collect();
                Series::line(name, role, points).markers()
            };
            let name = |mechanism: &str| format!("{mechanism}, B = {batch}");
            absolute = absolute
                .series(line(name("DP"), Role::Dp, |t| t.dp_microseconds))
                .series(line(name("GeoDP"), Role::GeoDp, |t| t.geodp_microseconds));
            relative = relative.series(line(name("GeoDP / DP"), Role::GeoDp, Times::ratio));
        }
        let relative = relative.mark_y(1.0, "equal");
        let same = "The same times: above 1, GeoDP takes longer.".to_owned();
        drawn = drawn.figure("fig6", "Figure 6", &absolute, caption(&times)).figure(
            "fig6-ratio",
            "Figure 6 as a ratio",
            &relative,
            same,
        );
        drawn.files.push(("fig6-times.csv".into(), to_csv(&times)));
        Ok(drawn)
    }
}

fn caption(times: &[Times]) -> String {
    let Some(last) = times.iter().max_by_key(|t| t.dim) else { return "Not run yet.".into() };
    let (low, high) = times
        .iter()
        .map(Times::ratio)
        .fold((f64::INFINITY, 0.0_f64), |(low, high), r| (low.min(r), high.max(r)));
    format!(
        "Medians over {} gradients. GeoDP takes {} to {} times as long as DP over d = 1250 to {}; at \
         the largest d one GeoDP perturbation takes {} µs. GeoDP’s scans run in chunks over all \
         threads here and never form an angle.",
        last.gradients,
        format::significant(low, 2),
        format::significant(high, 2),
        format::count(last.dim as u64),
        format::significant(last.geodp_microseconds, 3)
    )
}

fn to_csv(times: &[Times]) -> String {
    let header = ["dim", "batch", "gradients", "dp_microseconds", "geodp_microseconds", "ratio"];
    let rows = times.iter().map(|t| {
        vec![
            t.dim.to_string(),
            t.batch.to_string(),
            t.gradients.to_string(),
            csv::number(t.dp_microseconds),
            csv::number(t.geodp_microseconds),
            csv::number(t.ratio()),
        ]
    });
    csv::to_csv(header, rows)
}
