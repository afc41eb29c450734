//! `geodp export`: a trained model as an ONNX file.

use crate::failure::{bad_input, classify};
use geodp::trained::Trained;
use std::path::PathBuf;

/// Write a trained model as ONNX: raw columns or images in, named classes out.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  geodp export runs/patients --onnx patients.onnx
  geodp export runs/mnist --onnx digits.onnx")]
pub(crate) struct Args {
    /// The folder of a finished run.
    run: PathBuf,
    /// Where to write the ONNX file.
    #[arg(long, value_name = "FILE")]
    onnx: PathBuf,
    /// For a model on scattering features: take the features as the input, and leave their computation out.
    #[arg(long)]
    after_features: bool,
}

pub(crate) fn run(args: Args, json: bool) -> anyhow::Result<()> {
    let trained = Trained::open(&args.run).map_err(classify)?;
    let bytes = trained.to_onnx(args.after_features).map_err(classify)?;
    std::fs::write(&args.onnx, &bytes)
        .map_err(|e| bad_input(format!("cannot write {}: {e}", args.onnx.display())))?;
    if json {
        println!("{}", serde_json::json!({ "onnx": args.onnx, "bytes": bytes.len() }));
    } else {
        println!("{} ({} bytes)", args.onnx.display(), bytes.len());
    }
    Ok(())
}
