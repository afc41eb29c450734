//! The binary `geodp`: one file per command, in `commands/`.
//!
//! Exit codes: 0 success, 2 bad input (a flag, a config, a file), 130 interrupted, 1 anything else. Errors go to
//! standard error in one line; with `--json`, results are one JSON object on standard output.

#[macro_use]
mod output;

mod commands;
mod failure;
mod interrupt;
mod pool;
mod progress;
mod stdin;
mod summary;

use clap::{Parser, Subcommand};
use geodp_mpi::Seat;
use std::process::ExitCode;

/// Says whether several machines can train together.
const VERSION: &str = if geodp_mpi::BUILT_IN {
    concat!(env!("CARGO_PKG_VERSION"), " (with MPI)")
} else {
    concat!(env!("CARGO_PKG_VERSION"), " (without MPI)")
};

/// Train models with differential privacy, and say exactly what privacy was bought.
#[derive(Debug, Parser)]
#[command(name = "geodp", version = VERSION, arg_required_else_help = true)]
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
    // Held to the end: MPI must be left last.
    let seat = match geodp_mpi::join() {
        Ok(seat) => seat,
        Err(error) => return fail(&failure::bad_input(error)),
    };
    let result = match (cli.command, &seat) {
        (Command::Train(args), seat) => commands::train::run(*args, seat, cli.json),
        (command, Seat::Alone) => run(command, cli.json),
        (_, Seat::Worker(_)) => return ExitCode::SUCCESS,
        (_, Seat::Leader(_)) => Err(failure::bad_input(
            "only train runs in several processes; start this command without mpirun",
        )),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the output has read enough.
        Err(error) if failure::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    let label = if error.is::<failure::Stopped>() { "" } else { "error: " };
    eprintln!("{label}{error:#}");
    failure::exit_code(error)
}

fn run(command: Command, json: bool) -> anyhow::Result<()> {
    match command {
        Command::Account(args) => commands::account::run(args, json),
        Command::Audit(args) => commands::audit::run(*args, json),
        Command::Demo(args) => commands::demo::run(args, json),
        Command::Plan(args) => commands::plan::run(args, json),
        Command::Train(args) => commands::train::run(*args, &Seat::Alone, json),
        Command::Evaluate(args) => commands::evaluate::run(args, json),
        Command::Predict(args) => commands::predict::run(args, json),
        Command::Export(args) => commands::export::run(args, json),
        Command::Data(args) => commands::data::run(args, json),
        Command::Lab(args) => commands::lab::run(args, json),
        Command::Report(args) => commands::report::run(args, json),
        Command::Completions(args) => commands::completions::run(args),
    }
}
