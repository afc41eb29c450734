//! A table as a page section and a bar chart for each σ.

use super::loss::Loss;
use super::protocol::Protocol;
use super::rows::{LARGE_BATCH, Noise, SMALL_BATCH};
use super::summary::Line;
use super::task::{Scale, Which};
use super::{Found, Table, rate, readings, sheet, train};
use crate::Error;
use crate::experiment::{Drawn, FinishedOf, PageContext};
use crate::options::Options;
use crate::store::Settings;
use geodp_report::{Axis, Bars, Callout, Estimate, Role, format};

/// Everything that is finished of a table.
pub(super) fn draw(
    table: &Table,
    finished: &FinishedOf<Table>,
    page: &PageContext<'_>,
) -> Result<Drawn, Error> {
    let lines = table.lines(finished);
    let readings = match table.protocol {
        Protocol::SmallSteps => {
            let as_stated = table.as_stated();
            Some(as_stated.lines(&page.store.finished(&as_stated)?.unwrap_or_default()))
        }
        Protocol::AsStated | Protocol::Trained => None,
    };
    let mut drawn = Drawn::new(table.title);
    drawn.files.push((format!("{}.csv", table.id), sheet::to_csv(table, &lines)));
    drawn = drawn.with(|section| {
        let section = match &finished.settings {
            Some(settings) => section.paragraph(protocol(table, settings)),
            None => section,
        };
        let section = match lines.iter().filter(|line| line.is_missing()).count() {
            0 => section,
            n => section.callout(
                Callout::Info,
                format!("{n} of {} cells of this table are not run yet.", lines.len()),
            ),
        };
        let section = match &readings {
            None => section.table(accuracy_table(table, &lines)),
            Some(as_stated) => readings::tables(table, as_stated, &lines)
                .into_iter()
                .fold(section, |section, shown| section.table(shown)),
        };
        let section = section.table(privacy_table(table, &lines));
        lines.iter().filter_map(polar_steps).fold(section, |section, text| section.paragraph(text))
    });
    for (column, sigma) in table.sigmas.iter().enumerate() {
        let name = format!("{}-sigma{sigma}", table.id);
        let own: Vec<&Line> = lines.iter().filter(|l| l.sigma == *sigma).collect();
        let mut text = caption(column, *sigma, &own);
        if let Some(share) = noise_share(table, *sigma, finished)? {
            text += &format!(
                " DP’s noise at B = {LARGE_BATCH} is {} % of the mean gradient’s length (median over \
                 a training without noise).",
                format::significant(100.0 * share, 2)
            );
        }
        let label = format!("{}, σ = {sigma}", table.label());
        drawn = drawn.figure(&name, &label, &bars(table, *sigma, &own), text);
    }
    Ok(drawn)
}

/// How certified GeoDP's steps went, where it was run.
fn polar_steps(line: &Line) -> Option<String> {
    let polar = line.first.as_ref()?.polar?;
    Some(format!("Certified GeoDP’s steps at σ = {}: {polar}.", line.sigma))
}

/// How long DP's noise is beside the clipped mean gradient: σ·C·√d/B over the median ‖mean‖.
fn noise_share(
    table: &Table,
    sigma: f64,
    finished: &FinishedOf<Table>,
) -> Result<Option<f64>, Error> {
    let crossing = finished.results().find_map(Found::crossing_beta);
    let Some(crossing) = crossing else { return Ok(None) };
    let dim = table.which.network()?.dim() as f64;
    Ok(Some(sigma * dim.sqrt() / (LARGE_BATCH as f64 * crossing.mean_norm_over_clip)))
}

/// How the numbers came about, in sentences.
pub(super) fn protocol(table: &Table, settings: &Settings) -> String {
    let options = Options::of(settings);
    let scale = table.which.scale(table.protocol, &options);
    let rates: Vec<String> = scale.rates.iter().map(f64::to_string).collect();
    let mut text = format!(
        "Protocol {}: {} for {} epochs, {} seed{}. Every gradient is clipped per sample at C = {}, \
         {} The optimiser is {}. The paper does not state η; here it is searched for \
         each perturbation, β, clipping rule, σ and B on the one grid {{{}}}: each rate trains for \
         {} on five sixths of the training set, and the accuracy on the held-back sixth decides; where the winner stands at \
         the edge of what was tried, the grid goes on by factors of two, at most {} times. IS and \
         SUR use the rate of the method they are added to, certified GeoDP that of DP. “IS control” computes as many gradients \
         as IS and keeps them all. “no noise” is the same clipped training with σ = 0.",
        table.protocol.name(),
        table.which.words(),
        scale.epochs,
        settings.seeds,
        if settings.seeds == 1 { "" } else { "s" },
        train::CLIP_NORM,
        batches_and_noise(table.protocol),
        optimiser(table.protocol),
        rates.join(", "),
        search_length(&scale),
        rate::MOST_MORE,
    );
    if scale.epochs != 20 {
        text += &format!(" The paper trains for 20 epochs; this run for {}.", scale.epochs);
    }
    if scale.divide > 1 {
        let what = match table.protocol {
            Protocol::AsStated => "records and batch sizes are one",
            Protocol::SmallSteps | Protocol::Trained => "records are one",
        };
        let divide = scale.divide;
        text += &format!(
            " Small form: {what} {divide}th of the full ones, B in the table is the full one."
        );
    }
    text
}

/// How batches are drawn, and which noise a step gets.
fn batches_and_noise(protocol: Protocol) -> String {
    let Some(records) = protocol.records_in_step() else {
        return "batches are drawn by Poisson sampling with rate B/N.".to_owned();
    };
    let why = match protocol {
        Protocol::Trained => {
            "a step stands for one of B records of which a sample is computed (as in Sander, Stock and \
             Sablayrolles 2023), and there are as many steps as training needs, not 20·N/B"
        }
        _ => "B enters as the paper’s formulas use it, in the noise alone",
    };
    format!(
        "batches are drawn by Poisson sampling with rate {records}/N, and the noise of a step is that of the \
         stated σ, C and B: {why}. Every ε below is of what was really run, {records} records and a noise \
         multiplier of {records}·σ/B in each step, and therefore large."
    )
}

fn optimiser(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::AsStated => "SGD without momentum",
        Protocol::SmallSteps | Protocol::Trained => {
            "SGD with momentum 0.9, and η falls along a cosine after a short rise"
        }
    }
}

/// How long a rate of the search trains.
fn search_length(scale: &Scale) -> String {
    let small = scale.search_epochs(SMALL_BATCH);
    match scale.protocol {
        Protocol::AsStated => {
            let large = scale.search_epochs(LARGE_BATCH);
            format!(
                "{small} epochs at B = {SMALL_BATCH} ({large} at B = {LARGE_BATCH}, as many steps)"
            )
        }
        Protocol::SmallSteps | Protocol::Trained => format!("{small} epochs"),
    }
}

fn accuracy_table(table: &Table, lines: &[Line]) -> geodp_report::Table {
    let mut header = ["method", "B", "β"].map(str::to_owned).to_vec();
    for sigma in &table.sigmas {
        header.extend([format!("σ = {sigma}"), "paper’s".to_owned()]);
    }
    header.push("η".to_owned());
    let mut shown = geodp_report::Table::new(header).caption(
        "Test accuracy in %, mean ± standard deviation over seeds; beside it the paper’s.",
    );
    for pair in lines.chunks(table.sigmas.len()) {
        let mut cells = first_columns(&pair[0]).to_vec();
        for line in pair {
            let published = line.published.map_or("—".to_owned(), |p| format!("{p:.2}"));
            cells.extend([line.accuracy_text(), published]);
        }
        cells.push(rates(pair));
        shown = shown.row(cells);
    }
    shown
}

/// Method, B and β of a row.
pub(super) fn first_columns(line: &Line) -> [String; 3] {
    let method = line.row.method;
    let beta = match (&line.first, method.beta_text().as_str()) {
        (Some(first), "β*") => {
            format!("β* = {}", format::significant(first.beta.unwrap_or(f64::NAN), 2))
        }
        (_, text) => text.to_owned(),
    };
    [method.name(), method.batch.to_string(), beta]
}

/// η of a row's columns, once where they are equal.
pub(super) fn rates(pair: &[Line]) -> String {
    let rate = |l: &Line| l.first.as_ref().map_or("—".into(), |o| o.learning_rate.to_string());
    let mut rates: Vec<String> = pair.iter().map(rate).collect();
    rates.dedup();
    rates.join(" / ")
}

/// What each training's statement says, and what its records were measured to pay.
pub(super) fn privacy_table(table: &Table, lines: &[Line]) -> geodp_report::Table {
    let header =
        ["method", "B", "β", "σ", "claimed ε", "as published", "measured ε", "inside", "β_safe"];
    let paper = table
        .sigmas
        .iter()
        .map(|s| format!("{} for σ = {s}", format::epsilon(paper_epsilon(*s))))
        .collect::<Vec<_>>()
        .join(", ");
    let mut shown = geodp_report::Table::new(header).caption(format!(
        "Privacy of each training at δ = 10⁻⁵ (N = {} records, Poisson sampling), every ε under its \
         kind; one too large for what the machine’s noise leaves over holds in real numbers \
         only, and says so (certified GeoDP has none then: its chance of a miss counts e^ε-fold). As \
         published: the paper’s accounting of GeoDP, with a further δ′ of up to 1 − β; for SUR, accepted steps alone. Measured on followed training records, with amplification by \
         sampling: the largest ε of a record / the median; the share of records that never moved \
         magnitude and direction further than the noise was scaled for (“inside”); the smallest β \
         that would have covered all (“β_safe”). The CSV has more quantiles. The ε that the paper \
         prints beside σ, √(2·ln(1.25/δ)/σ), takes σ for a variance and counts one step: {paper}.",
        format::count(table.which.records())
    ));
    for line in lines.iter().filter(|l| l.row.method.noise != Noise::None) {
        let Some(first) = &line.first else { continue };
        let epsilon = |e: Option<f64>| format::epsilon(e.unwrap_or(f64::INFINITY));
        let claimed = first.statement.first().map(|e| {
            let real = if e.in_real_numbers { ", in real numbers" } else { "" };
            format!("{} {}{real}", epsilon(e.epsilon), e.kind)
        });
        let published = first.statement.iter().find(|e| e.kind.is_published());
        let measured = |pick: fn(&Loss) -> String| first.measured.as_ref().map_or("—".into(), pick);
        let spread = first.measured.as_ref().map(Loss::compared);
        shown = shown.row([
            line.row.method.name(),
            line.row.method.batch.to_string(),
            line.row.method.beta_text(),
            line.sigma.to_string(),
            claimed.unwrap_or("—".to_owned()),
            published.map_or("—".to_owned(), |e| epsilon(e.epsilon)),
            spread.map_or("—".to_owned(), |s| {
                format!("{} / {}", epsilon(s.largest), epsilon(s.median))
            }),
            measured(|m| format::percent(m.share_of_records_inside)),
            measured(|m| format::significant(m.beta_safe, 2)),
        ]);
    }
    shown
}

/// The ε that the paper lists beside a σ.
pub(crate) fn paper_epsilon(sigma: f64) -> f64 {
    (2.0 * (1.25 / train::DELTA).ln() / sigma).sqrt()
}

fn bars(table: &Table, sigma: f64, lines: &[&Line]) -> Bars {
    let names = lines.iter().map(|line| {
        let method = line.row.method;
        let beta = match method.beta_text() {
            text if text.is_empty() => text,
            text => format!(", β = {text}"),
        };
        format!("{}, B = {}{beta}", method.name(), method.batch).replace("β = β*", "β*")
    });
    let protocol = table.protocol.name().replace('-', " ");
    let title = format!("Test accuracy at σ = {sigma}, {protocol}: {}", table.short());
    let here = lines.iter().map(|line| match line.mean() {
        Some(mean) if line.accuracies.len() > 1 => {
            Estimate::plus_minus(mean, crate::stats::std_dev(&line.accuracies))
        }
        mean => Estimate::from(mean.unwrap_or(f64::NAN)),
    });
    let published = lines.iter().map(|line| line.published.unwrap_or(f64::NAN));
    Bars::new(title, Axis::linear("test accuracy").unit("%").range(0.0, 100.0), names)
        .group("published", Role::Neutral, published)
        .group("here", Role::Neutral, here)
}

/// States the finding: how the rows without add-ons compare.
fn caption(column: usize, sigma: f64, lines: &[&Line]) -> String {
    let run: Vec<&&Line> = lines.iter().filter(|l| !l.row.method.has_add_on()).collect();
    let best = |geodp: bool| {
        run.iter()
            .filter(|l| matches!(l.row.method.noise, Noise::Geodp { .. }) == geodp)
            .filter(|l| l.row.method.noise != Noise::None && l.row.published.is_some())
            .filter_map(|l| Some((l.mean()?, l)))
            .max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let (Some((dp, dp_line)), Some((geo, geo_line))) = (best(false), best(true)) else {
        return format!("Column {} of the table, σ = {sigma}: not run yet.", column + 1);
    };
    let published = |line: &Line| line.published.map_or("–".to_owned(), |p| format!("{p:.2}"));
    let clean = run.iter().find(|l| l.row.method.noise == Noise::None);
    let clean = clean.and_then(|l| Some((l.mean()?, l))).map_or(String::new(), |(mean, line)| {
        let batch = line.row.method.batch;
        format!(" Without noise, at B = {batch}: {mean:.2} % (paper: {}).", published(line))
    });
    format!(
        "σ = {sigma}, methods without add-ons that the paper has: the best DP row reaches {dp:.2} % at \
         B = {} (paper: {}), the best GeoDP row {geo:.2} % at B = {}, β = {} (paper: {}).{clean} Equal \
         σ is not equal privacy: see the comparison at equal measured privacy. Whiskers: standard \
         deviation over seeds.",
        dp_line.row.method.batch,
        published(dp_line),
        geo_line.row.method.batch,
        geo_line.row.method.beta_text(),
        published(geo_line),
    )
}

impl Table {
    fn short(&self) -> &'static str {
        match self.which {
            Which::Mnist => "CNN on MNIST",
            Which::Cifar10 => "ResNet on CIFAR-10",
        }
    }
}
