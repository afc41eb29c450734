//! `geodp audit membership`: which of a model's records could be told to be its members.

use super::{audit_error, bar, print_json, seed_of, stopped_or, write_results};
use crate::failure::{bad_input, classify};
use crate::interrupt;
use crate::pool::in_pool;
use geodp::ModelFile;
use geodp::config::RunConfig;
use geodp::run::Review;
use geodp_audit::cells::Cells;
use geodp_audit::membership::{Attack, CONFIDENCE, Evidence, Pool, Shadows, strongest};
use geodp_audit::report::membership_section;
use geodp_audit::{AuditStream, Hooks};
use geodp_mechanism::NoiseSource;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Tell a finished run's training records from its test records: by loss, LiRA and RMIA.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  geodp audit membership runs/mnist --records 500 --shadow-models 16
  geodp audit membership runs/mnist --members patients.txt --non-members others.txt")]
pub(crate) struct Args {
    /// The folder of a finished run.
    run: PathBuf,
    /// Members, and as many non-members, drawn at random.
    #[arg(long, value_name = "N", default_value_t = 500, conflicts_with_all = ["members", "non_members"], value_parser = clap::value_parser!(u64).range(1..))]
    records: u64,
    /// A text file with the rows (from 0) of the training set to attack, one per line.
    #[arg(long, value_name = "FILE", requires = "non_members")]
    members: Option<PathBuf>,
    /// The same of the test set, which the model never saw.
    #[arg(long, value_name = "FILE", requires = "members")]
    non_members: Option<PathBuf>,
    /// Shadow models, trained by the run's own plan; an even number.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u64).range(2..=4096))]
    shadow_models: u64,
    /// Makes the draws and the shadows' noise repeatable.
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Folder of the audit; audit-membership in the run's folder if absent. A stopped audit goes on
    /// in its folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Threads to use; all cores if absent.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: Option<u64>,
}

/// The most records of the population that RMIA compares with.
const POPULATION: usize = 2000;

#[derive(Serialize)]
struct Setup<'a> {
    audit: &'static str,
    seed: u64,
    shadow_models: u64,
    statement: &'a str,
    config: &'a RunConfig,
    members: &'a [u32],
    non_members: &'a [u32],
}

#[derive(Serialize)]
struct Audit {
    notice: &'static str,
    privacy_of_the_model: String,
    members: usize,
    non_members: usize,
    shadow_models: u64,
    strongest: Option<&'static str>,
    attacks: Vec<Attack>,
}

pub(crate) fn run(args: Args, json: bool) -> anyhow::Result<()> {
    if !args.shadow_models.is_multiple_of(2) {
        return Err(bad_input("--shadow-models must be even: models come in pairs"));
    }
    let review = Review::open(&args.run).map_err(classify)?;
    if !review.finished {
        return Err(bad_input(format!("{}: the run is not finished", args.run.display())));
    }
    let config = RunConfig::read(&args.run.join("run.toml")).map_err(classify)?;
    let (model, network) =
        ModelFile::read(&args.run.join("model.safetensors")).map_err(classify)?;
    if config.views.is_some() {
        return Err(bad_input(
            "the run trains on several views of each record, and the attacks here ask a model about \
             one: they would be weaker than an attacker who asks about all. Audit such a training \
             with `geodp audit one-run`, whose canaries are whole units",
        ));
    }
    let split = config.load_in(&args.run, &|_, _| ()).map_err(classify)?.split;
    if let Some(column) = split.train.units() {
        return Err(bad_input(format!(
            "the run protects one {} with all rows, and the attacks here ask about one row: they would be \
             weaker than an attacker who asks about all. Audit such a training with `geodp audit \
             one-run`, whose canaries are whole units",
            column.name()
        )));
    }
    let folder = args.out.clone().unwrap_or_else(|| args.run.join("audit-membership"));
    let seed = seed_of(&folder, args.seed)?;
    let source = NoiseSource::from_seed(seed);
    let (members, non_members, population) =
        choose(&args, split.train.len(), split.test.len(), &source)?;

    // The target's own σ: a target ε would be calibrated anew for the shadows' number of records.
    let mut params = config.plan_params();
    params.privacy.noise_multiplier = review.plan.noise_multiplier();
    params.privacy.epsilon = None;
    params.privacy.epsilon_limit = None;
    let pool = Pool { train: &split.train, test: &split.test };
    let shadows =
        Shadows::new(&network, &pool, &params, &members, &non_members, &population, source)
            .map_err(audit_error)?;
    let setup = Setup {
        audit: "membership",
        seed,
        shadow_models: args.shadow_models,
        statement: &model.statement,
        config: &config,
        members: &members,
        non_members: &non_members,
    };
    let cells = Cells::open(&folder, &setup).map_err(audit_error)?;
    let stop = interrupt::flag()?;
    let bar = bar(args.shadow_models * shadows.plan().steps(), "shadow models", json);
    let hooks = Hooks { on_step: &|| bar.inc(1), stop };
    let trained = in_pool(args.threads, || shadows.train_all(args.shadow_models, &cells, &hooks))?;
    bar.finish_and_clear();
    let trained = match trained {
        Ok(trained) => trained,
        Err(error) => return stopped_or(error, &folder),
    };
    let (target, of_population) = shadows.ask(&model.weights).map_err(audit_error)?;
    let evidence = Evidence { target, population: of_population, shadows: trained };
    let attacks = evidence.attacks(members.len()).map_err(audit_error)?;
    let count = args.shadow_models as usize;
    let section =
        membership_section(&attacks, &model.statement, members.len(), non_members.len(), count);
    let audit = Audit {
        notice: geodp_audit::record_loss::NOTICE,
        privacy_of_the_model: model.statement.clone(),
        members: members.len(),
        non_members: non_members.len(),
        shadow_models: args.shadow_models,
        strongest: strongest(&attacks).map(|attack| attack.name),
        attacks,
    };
    let subtitle = format!("{} on {}", config.model_text(&split.train), split.train.name());
    let report = write_results(&cells, &audit, "Who was in the training set?", &subtitle, section)?;
    if json {
        return print_json(&audit, &report);
    }
    println!("privacy of the model  {}", audit.privacy_of_the_model);
    println!("{:<14} {:>27} {:>27} {:>7}", "attack", "TPR at 1 % FPR", "TPR at 0.1 % FPR", "AUC");
    for attack in &audit.attacks {
        let rate = |rate: f64, (low, high): (f64, f64)| {
            format!("{:.1} % ({:.1} to {:.1} %)", 100.0 * rate, 100.0 * low, 100.0 * high)
        };
        println!(
            "{:<14} {:>27} {:>27} {:>7.3}",
            attack.name,
            rate(attack.roc.tpr_at_1_percent, attack.tpr_at_1_percent_limits),
            rate(attack.roc.tpr_at_01_percent, attack.tpr_at_01_percent_limits),
            attack.roc.auc
        );
    }
    if let Some(name) = audit.strongest {
        let confidence = 100.0 * CONFIDENCE;
        println!(
            "strongest      {name}; all limits hold together with {confidence:.0} % confidence"
        );
    }
    println!("results {}", report.display());
    Ok(())
}

/// Members, non-members and population: named in files, or drawn.
fn choose(
    args: &Args,
    train: usize,
    test: usize,
    source: &NoiseSource,
) -> anyhow::Result<(Vec<u32>, Vec<u32>, Vec<u32>)> {
    let draw = |count: usize, of: usize, stream: AuditStream| -> anyhow::Result<Vec<u32>> {
        let mut chosen = stream.open(source, 0).map_err(audit_error)?.choose(count, of as u32);
        chosen.sort_unstable();
        Ok(chosen)
    };
    let (members, non_members) = match (&args.members, &args.non_members) {
        (Some(members), Some(others)) => (rows(members, train)?, rows(others, test)?),
        _ => {
            let count = args.records as usize;
            if count > train / 2 || count >= test {
                return Err(bad_input(format!(
                    "--records {count}: half of the {train} training records and fewer than the \
                     {test} test records can be attacked"
                )));
            }
            (draw(count, train, AuditStream::Members)?, draw(count, test, AuditStream::NonMembers)?)
        }
    };
    let taken: std::collections::BTreeSet<u32> = non_members.iter().copied().collect();
    let mut population: Vec<u32> = (0..test as u32).filter(|row| !taken.contains(row)).collect();
    population.truncate(POPULATION);
    Ok((members, non_members, population))
}

/// Row numbers of a file, each once.
fn rows(path: &Path, limit: usize) -> anyhow::Result<Vec<u32>> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| bad_input(format!("cannot read {}: {error}", path.display())))?;
    let mut rows = std::collections::BTreeSet::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let row = line.trim().parse::<u32>().ok().filter(|row| (*row as usize) < limit);
        let row = row.ok_or_else(|| {
            bad_input(format!(
                "{}, line {}: '{}' is not a row from 0 to {}",
                path.display(),
                number + 1,
                line.trim(),
                limit.saturating_sub(1)
            ))
        })?;
        rows.insert(row);
    }
    if rows.is_empty() {
        return Err(bad_input(format!("{} names no rows", path.display())));
    }
    Ok(rows.into_iter().collect())
}
