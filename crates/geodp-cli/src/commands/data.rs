//! `geodp data`: which data sets are here, getting CIFAR-10, importing it from a folder, and drafting
//! the schema of a table.

use crate::failure::bad_input;
use geodp_data::table::{DraftOptions, draft};
use geodp_data::{cifar10, default_data_dir};
use serde::Serialize;
use std::path::PathBuf;

/// List, get or import data sets; draft the schema of a table.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  geodp data list
  geodp data get cifar10
  geodp data import cifar10 ~/Downloads/cifar-10-binary.tar.gz
  geodp data schema patients.csv --label outcome > schema.toml")]
pub(crate) struct Args {
    /// Where data sets are kept; $GEODP_DATA or the platform's data folder if absent.
    #[arg(long, global = true, value_name = "DIR")]
    folder: Option<PathBuf>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Which data sets are here.
    List,
    /// Download a data set from its official site, checked by SHA-256.
    Get {
        /// cifar10.
        name: String,
    },
    /// Take a data set from a folder or archive in its official layout.
    Import {
        /// cifar10.
        name: String,
        /// The folder or the .tar.gz.
        source: PathBuf,
    },
    /// Draft the schema of a table, to be completed by hand, on standard output.
    Schema {
        /// The table: .csv, .tsv (each also .gz) or .parquet.
        table: PathBuf,
        /// The column to be learnt.
        #[arg(long, value_name = "COLUMN")]
        label: Option<String>,
        /// Fill ranges and values in from the records. NOT PRIVATE; the schema will say so.
        #[arg(long)]
        look: bool,
        /// The character between cells, if it is neither a comma nor, in a .tsv, a tab.
        #[arg(long, value_name = "CHARACTER")]
        delimiter: Option<char>,
    },
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    present: bool,
    records: &'static str,
    about: &'static str,
}

pub(crate) fn run(args: Args, json: bool) -> anyhow::Result<()> {
    let folder = match args.folder {
        Some(folder) => folder,
        None => default_data_dir().map_err(bad_input)?,
    };
    let known = |name: &str| match name {
        "cifar10" => Ok(()),
        "mnist" => Err(bad_input("mnist is bundled: it needs no download")),
        other => Err(bad_input(format!("unknown data set {other}: the one to get is cifar10"))),
    };
    let path = match &args.action {
        Action::List => return list(&folder, json),
        Action::Schema { table, label, look, delimiter } => {
            let plain = |c: char| u8::try_from(c).ok().filter(u8::is_ascii);
            let delimiter = delimiter.map(|c| plain(c).ok_or("--delimiter is a plain character"));
            let delimiter = delimiter.transpose().map_err(bad_input)?;
            let options = DraftOptions { look: *look, label: label.clone(), delimiter };
            let text = draft(table, &options).map_err(bad_input)?;
            if json {
                println!("{}", serde_json::json!({ "schema": text, "looked": look }));
            } else {
                print!("{text}");
            }
            return Ok(());
        }
        Action::Get { name } => {
            known(name)?;
            cifar10::download(&folder, !json)?
        }
        Action::Import { name, source } => {
            known(name)?;
            cifar10::import(source, &folder).map_err(bad_input)?
        }
    };
    if json {
        println!("{}", serde_json::json!({ "name": "cifar10", "folder": path }));
    } else {
        println!("cifar10 is in {}", path.display());
    }
    Ok(())
}

fn list(folder: &std::path::Path, json: bool) -> anyhow::Result<()> {
    let cifar10_present = cifar10::is_present(folder);
    let entries = [
        Entry { name: "mnist", present: true, records: "60000 + 10000", about: "bundled" },
        Entry {
            name: "cifar10",
            present: cifar10_present,
            records: "50000 + 10000",
            about: if cifar10_present { "imported" } else { "geodp data get cifar10" },
        },
    ];
    if json {
        println!("{}", serde_json::to_string_pretty(&entries)?);
        return Ok(());
    }
    println!("{:<9} {:<8} {:<15} how", "name", "here", "train + test");
    for Entry { name, present, records, about } in entries {
        let here = if present { "yes" } else { "no" };
        println!("{name:<9} {here:<8} {records:<15} {about}");
    }
    println!("\nfolder: {}", folder.display());
    println!("Any CSV with a schema, IDX or NPY files can be trained on, too: geodp train --help");
    Ok(())
}
