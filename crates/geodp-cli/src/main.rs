//! The binary `geodp`: one file per command, in `commands/`.
//!
//! Exit codes: 0 success, 2 bad input (a flag, a config, a file), 130 interrupted, 1 anything else. Errors go to
//! standard error in one line; with `--json`, results are one JSON object on standard output.

mod commands;
mod failure;
mod interrupt;
mod progress;
mod stdin;
mod summary;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Train models with differential privacy, and say exactly what privacy was bought.
#[derive(Debug, Parser)]
#[command(name = "geodp", version, arg_required_else_help = true)]
struct Cli {
    /// Print the result as one JSON object.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Account(commands::account::Args),
    Audit(Box<commands::audit::Args>),
    Demo(commands::demo::Args),
    Plan(commands::plan::Args),
    Train(Box<commands::train::Args>),
    Evaluate(commands::evaluate::Args),
    Predict(commands::predict::Args),
    Export(commands::export::Args),
    Data(commands::data::Args),
    Lab(commands::lab::Args),
    Report(commands::report::Args),
    Completions(commands::completions::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Account(args) => commands::account::run(args, cli.json),
        Command::Audit(args) => commands::audit::run(*args, cli.json),
        Command::Demo(args) => commands::demo::run(args, cli.json),
        Command::Plan(args) => commands::plan::run(args, cli.json),
        Command::Train(args) => commands::train::run(*args, cli.json),
        Command::Evaluate(args) => commands::evaluate::run(args, cli.json),
        Command::Predict(args) => commands::predict::run(args, cli.json),
        Command::Export(args) => commands::export::run(args, cli.json),
        Command::Data(args) => commands::data::run(args, cli.json),
        Command::Lab(args) => commands::lab::run(args, cli.json),
        Command::Report(args) => commands::report::run(args, cli.json),
        Command::Completions(args) => commands::completions::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the output has read enough.
        Err(error) if failure::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let label = if error.is::<failure::Stopped>() { "" } else { "error: " };
            eprintln!("{label}{error:#}");
            failure::exit_code(&error)
        }
    }
}
