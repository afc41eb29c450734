//! Federated trainings as a page section: a curve for each set, model and way of dealing, a table with ε
//! of its kind, direction errors and what clients pay, the verdict, and what rounds of many clients cost.

use super::{ARMS, Arm, Federated, Found, Job, MODELS, Model, Outcome, SPLITS, Scale, Set, Split};
use crate::claims::{Verdict, badge};
use crate::experiment::{Drawn, FinishedOf};
use crate::stats;
use geodp_account::Claim;
use geodp_report::{Axis, Chart, Role, Series, Table, Text, csv, format};

/// All seeds of one set, model, split and arm.
struct Line<'a> {
    set: Set,
    model: Model,
    split: Split,
    arm: Arm,
    outcomes: Vec<&'a Outcome>,
}

impl Line<'_> {
    /// Final test accuracies in %.
    fn percents(&self) -> Vec<f64> {
        let last = self.outcomes.iter().filter_map(|outcome| outcome.last());
        last.map(|point| 100.0 * point.accuracy).collect()
    }

    fn accuracy_text(&self) -> String {
        let percents = self.percents();
        match percents.len() {
            0 => "diverged".to_owned(),
            1 => format!("{:.2}", percents[0]),
            _ => format!("{:.2} ± {:.2}", stats::mean(&percents), stats::std_dev(&percents)),
        }
    }

    fn claim(&self) -> Option<&Claim> {
        self.outcomes.iter().find_map(|outcome| outcome.last()?.claim.as_ref())
    }

    /// The mean over seeds of the mean angle over rounds, in degrees.
    fn direction_error(&self) -> f64 {
        stats::mean(&self.outcomes.iter().filter_map(|o| o.direction_error).collect::<Vec<f64>>())
    }

    /// The largest measured ε of any followed client of any seed.
    fn largest_measured(&self) -> Option<f64> {
        let of = |o: &&Outcome| o.measured.as_ref().map(|m| m.claim().epsilon_largest);
        self.outcomes.iter().filter_map(of).reduce(f64::max)
    }

    fn measured_text(&self) -> String {
        let largest = self.largest_measured();
        largest.map_or("—".to_owned(), |e| format!("measured ε = {}", format::epsilon(e)))
    }
}

fn lines(finished: &FinishedOf<Federated>) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (job, found) in &finished.pairs {
        let (&Job::Train { set, model, split, arm, .. }, Found::Outcome(outcome)) = (job, found)
        else {
            continue;
        };
        let own = |line: &&mut Line<'_>| {
            (line.set, line.model, line.split, line.arm) == (set, model, split, arm)
        };
        match lines.iter_mut().find(own) {
            Some(line) => line.outcomes.push(outcome),
            None => lines.push(Line { set, model, split, arm, outcomes: vec![outcome] }),
        }
    }
    lines
}

const ABOUT: &str = "Unit of privacy: one client with all its records. Cohorts are drawn by independent \
coins, every round is charged before it is made, updates are clipped on the server, and their sum is \
divided by the public q·N. All arms share local training, C, cohorts and the server's rate; the rate was \
chosen on held-back training records with DP's noise, and the test set was measured along the rounds, not \
chosen by. ε of DP and of certified GeoDP is certified; GeoDP's is conditional on a bound of the turn that \
nothing enforces.";

pub(super) fn draw(title: &str, finished: &FinishedOf<Federated>) -> Drawn {
    let lines = lines(finished);
    let mut drawn = Drawn::new(title).with(|section| section.paragraph(ABOUT));
    drawn.files.push(("federated.csv".into(), to_csv(&lines)));
    drawn.files.push(("federated-rounds.csv".into(), rounds_csv(&lines)));
    for set in [Set::Mnist, Set::FashionMnist] {
        for (model, split) in MODELS.into_iter().flat_map(|m| SPLITS.map(|s| (m, s))) {
            let own: Vec<&Line<'_>> = lines
                .iter()
                .filter(|line| (line.set, line.model, line.split) == (set, model, split))
                .collect();
            if own.is_empty() {
                continue;
            }
            let name = format!("federated-{}-{}-{}", set.name(), model.name(), split.name());
            let label = format!("Federated {}, {}, {}", set.title(), model.name(), split.name());
            drawn = drawn.figure(&name, &label, &chart(set, model, split, &own), caption(&own));
        }
    }
    let (verdict, finding) = judge(&lines);
    let scale = finished.results().find_map(|found| match found {
        Found::Scale(scale) => Some(scale),
        Found::Outcome(_) => None,
    });
    drawn.with(|section| {
        let judged = Table::new(["claim", "verdict", "finding"])
            .row([Text::from(CLAIM), badge(&verdict), Text::from(finding)])
            .caption(RULE);
        let section = section.table(table(&lines)).table(judged);
        match scale {
            Some(scale) => section.table(scale_table(scale)),
            None => section,
        }
    })
}

const CLAIM: &str = "GeoDP keeps the direction of a mean of client updates better than DP, and no client \
pays more than it claims.";

const RULE: &str = "Rule: holds if, for every set, model and way of dealing, the mean angle between the mean \
of clipped updates and GeoDP's release is smaller than DP's at the same target ε, and no followed client's \
measured ε exceeds GeoDP's conditional ε. Does not hold if the angle is larger, or a client pays more, \
everywhere.";

/// The verdict on GeoDP's direction error and what it claims.
fn judge(lines: &[Line<'_>]) -> (Verdict, String) {
    let of = |arm: Arm| lines.iter().filter(move |line| line.arm == arm);
    let mut good = 0;
    let mut texts = Vec::new();
    for geodp in of(Arm::Geodp) {
        let same =
            |dp: &&Line<'_>| (dp.set, dp.model, dp.split) == (geodp.set, geodp.model, geodp.split);
        let (Some(dp), Some(claim)) = (of(Arm::Dp).find(same), geodp.claim()) else { continue };
        let nearer = geodp.direction_error() < dp.direction_error();
        let within = geodp.largest_measured().is_none_or(|largest| largest <= claim.upper());
        good += usize::from(nearer && within);
        texts.push(format!(
            "{} {} {}: {:.1}° (DP {:.1}°), largest {} against {}",
            geodp.set.title(),
            geodp.model.name(),
            geodp.split.name(),
            geodp.direction_error(),
            dp.direction_error(),
            geodp.measured_text(),
            claim.short()
        ));
    }
    let verdict = match (good, texts.len()) {
        (_, 0) => Verdict::NotRun("federated"),
        (good, all) if good == all => Verdict::Holds,
        (0, _) => Verdict::DoesNotHold,
        (good, all) => Verdict::Depends(format!("in {good} of {all} federations")),
    };
    (verdict, texts.join("; "))
}

fn role(arm: Arm) -> Role {
    match arm {
        Arm::None => Role::NoNoise,
        Arm::Dp => Role::Dp,
        Arm::Geodp => Role::GeoDp,
        Arm::GeodpCertified => Role::CertifiedGeoDp,
    }
}

/// (round, mean accuracy in % over the seeds that reached it).
fn curve(line: &Line<'_>) -> Vec<(f64, f64)> {
    let Some(longest) = line.outcomes.iter().max_by_key(|outcome| outcome.curve.len()) else {
        return Vec::new();
    };
    let at = |round: u64| {
        let points = line.outcomes.iter().filter_map(|o| o.curve.iter().find(|p| p.round == round));
        stats::mean(&points.map(|point| 100.0 * point.accuracy).collect::<Vec<f64>>())
    };
    longest.curve.iter().map(|point| (point.round as f64, at(point.round))).collect()
}

fn chart(set: Set, model: Model, split: Split, lines: &[&Line<'_>]) -> Chart {
    let dealt = match split {
        Split::Iid => "IID clients",
        Split::Dirichlet => "Dirichlet(0.3) clients",
    };
    let title = format!("{}, {}: {dealt}", set.title(), model.title());
    let mut chart =
        Chart::new(title, Axis::linear("round"), Axis::linear("test accuracy").unit("%"));
    for arm in ARMS {
        for line in lines.iter().filter(|line| line.arm == arm) {
            chart = chart.series(Series::line(arm.title(), role(arm), curve(line)).markers());
        }
    }
    chart
}

fn caption(lines: &[&Line<'_>]) -> String {
    let text = |line: &&Line<'_>| {
        let claim = line.claim().map_or("no privacy".to_owned(), Claim::short);
        format!("{} {} % ({claim})", line.arm.title(), line.accuracy_text())
    };
    format!("At the last round: {}.", lines.iter().map(text).collect::<Vec<_>>().join("; "))
}

fn table(lines: &[Line<'_>]) -> Table {
    let header = [
        "set",
        "model",
        "clients",
        "arm",
        "accuracy in %",
        "ε of one client",
        "direction error",
        "largest client",
        "seeds",
    ];
    let mut table = Table::new(header).caption(
        "Client-level ε at δ = 10⁻⁴. Direction error: mean angle over rounds between the mean of clipped \
         updates and the release. Largest client: measured over 200 followed clients, for the data's owner.",
    );
    for line in lines {
        table = table.row([
            line.set.title().to_owned(),
            line.model.name().to_owned(),
            line.split.name().to_owned(),
            line.arm.title().to_owned(),
            line.accuracy_text(),
            line.claim().map_or("no privacy".to_owned(), Claim::short),
            format!("{:.1}°", line.direction_error()),
            line.measured_text(),
            line.outcomes.len().to_string(),
        ]);
    }
    table
}

fn scale_table(scale: &Scale) -> Table {
    let header =
        ["clients N", "cohort", "d", "a round", "their training", "ratio", "memory of the process"];
    let mut table = Table::new(header).caption(
        "A round (cohort, training, clipping, sum, noise, optimiser) beside the same clients' training \
         alone, measured in turn.",
    );
    for rounds in &scale.populations {
        let memory = rounds.resident_megabytes;
        table = table.row([
            format::count(rounds.population),
            rounds.cohort.to_string(),
            format::count(rounds.dim as u64),
            format!("{:.2} s", rounds.round_seconds),
            format!("{:.2} s", rounds.training_seconds),
            format!("{:.2}", rounds.ratio()),
            memory.map_or("—".to_owned(), |megabytes| format!("{megabytes:.0} MB")),
        ]);
    }
    table
}

fn number(value: f64) -> String {
    if value.is_nan() { String::new() } else { csv::number(value) }
}

fn to_csv(lines: &[Line<'_>]) -> String {
    let header = [
        "set",
        "model",
        "split",
        "arm",
        "seeds",
        "accuracy_mean_percent",
        "accuracy_std_percent",
        "epsilon",
        "epsilon_kind",
        "noise_multiplier",
        "direction_error_degrees",
        "crossing_beta",
        "measured_epsilon_largest",
    ];
    let rows = lines.iter().map(|line| {
        let percents = line.percents();
        let first = line.outcomes.first();
        let spread = if percents.is_empty() { f64::NAN } else { stats::std_dev(&percents) };
        vec![
            line.set.name().to_owned(),
            line.model.name().to_owned(),
            line.split.name().to_owned(),
            line.arm.name().to_owned(),
            percents.len().to_string(),
            number(stats::mean(&percents)),
            number(spread),
            line.claim().map_or(String::new(), |claim| csv::number(claim.upper())),
            line.claim().map_or("none".to_owned(), |claim| claim.kind().to_string()),
            number(first.and_then(|o| o.noise_multiplier).unwrap_or(f64::NAN)),
            number(line.direction_error()),
            number(first.and_then(|o| o.crossing_beta).unwrap_or(f64::NAN)),
            number(line.largest_measured().unwrap_or(f64::NAN)),
        ]
    });
    csv::to_csv(header, rows)
}

/// Accuracy and ε of every round that was looked at.
fn rounds_csv(lines: &[Line<'_>]) -> String {
    let header =
        ["set", "model", "split", "arm", "run", "round", "accuracy", "loss", "epsilon", "kind"];
    let mut rows = Vec::new();
    for line in lines {
        for (run, outcome) in line.outcomes.iter().enumerate() {
            rows.extend(outcome.curve.iter().map(|point| {
                let claim = point.claim.as_ref();
                vec![
                    line.set.name().to_owned(),
                    line.model.name().to_owned(),
                    line.split.name().to_owned(),
                    line.arm.name().to_owned(),
                    run.to_string(),
                    point.round.to_string(),
                    number(point.accuracy),
                    number(point.loss),
                    claim.map_or(String::new(), |claim| csv::number(claim.upper())),
                    claim.map_or("none".to_owned(), |claim| claim.kind().to_string()),
                ]
            }));
        }
    }
    csv::to_csv(header, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(direction_error: f64) -> Outcome {
        let text = format!(
            r#"{{"curve": [], "rounds": 1, "noise_multiplier": 1.0, "beta": null, "direction_error":
            {direction_error}, "crossing_beta": null, "measured": null, "polar": null}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn nothing_is_judged_before_it_is_run() {
        assert_eq!(judge(&[]).0, Verdict::NotRun("federated"));
        let (one, two) = (outcome(80.0), outcome(70.0));
        let line = |arm, outcome| Line {
            set: Set::Mnist,
            model: Model::Cnn,
            split: Split::Iid,
            arm,
            outcomes: vec![outcome],
        };
        // Without a finished claim there is no verdict either.
        assert_eq!(
            judge(&[line(Arm::Dp, &one), line(Arm::Geodp, &two)]).0,
            Verdict::NotRun("federated")
        );
    }
}
