//! The binary `geodp`: one file a command, in `commands/`.
//!
//! Exit codes: 0 success, 2 bad input (a flag, a config, a file), 1 anything else. Errors go to
//! standard error in one line; with `--json`, results are one JSON object on standard output.

mod commands;
mod failure;

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
    Demo(commands::demo::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Demo(args) => commands::demo::run(args, cli.json),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            failure::exit_code(&error)
        }
    }
}
