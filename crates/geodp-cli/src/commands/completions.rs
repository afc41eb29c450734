//! `geodp completions`: a script for the user's shell.

use clap::CommandFactory;

/// Print a completion script for a shell.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: geodp completions bash > ~/.local/share/bash-completion/completions/geodp"
)]
pub(crate) struct Args {
    /// Which shell.
    shell: clap_complete::Shell,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "geodp", &mut script);
    print!("{}", String::from_utf8_lossy(&script));
    Ok(())
}
