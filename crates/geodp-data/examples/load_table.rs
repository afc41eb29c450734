//! How fast a table is read and how much memory that takes:
//! `cargo run --release -p geodp-data --example load_table -- table.csv schema.toml`
//!
//! Memory is the most that the process ever held (Linux), against the matrix of f32 that it made.
//! `benchmarks/tables/run.py` compares it with others.

use geodp_data::table::{Schema, read};
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [table, schema] = &arguments[..] else {
        return Err("give a table and its schema".into());
    };
    let started = Instant::now();
    let (data, report) = read(Path::new(table), &Schema::load(Path::new(schema))?)?;
    let seconds = started.elapsed().as_secs_f64();
    let megabytes = std::fs::metadata(table)?.len() as f64 / 1e6;
    let matrix = (data.len() * data.input_len() * 4) as f64 / 1e6;
    println!("{} rows, {} cells changed", data.len(), report.changed_cells());
    println!("{megabytes:.0} MB in {seconds:.2} s: {:.0} MB/s", megabytes / seconds);
    if let Some(peak) = peak_megabytes() {
        println!("at most {peak:.0} MB for a matrix of {matrix:.0} MB: {:.2} times", peak / matrix);
    }
    Ok(())
}

/// The most memory this process ever held.
fn peak_megabytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? * 1024.0 / 1e6)
}
