//! A small tabular data set and a way to call the binary on it.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A folder with `data.csv` and `schema.toml`.
pub(crate) struct Bench {
    pub(crate) folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut csv = "a,b,color,label\n".to_owned();
        let mut state = 7_u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1_u64 << 31) as f64
        };
        for _ in 0..1200 {
            let (a, b) = (random(), random());
            let color = ["red", "blue"][usize::from(random() < 0.5)];
            let label = if a + 0.5 * b + 0.2 * random() > 0.85 { "yes" } else { "no" };
            writeln!(csv, "{a:.4},{b:.4},{color},{label}").unwrap();
        }
        std::fs::write(folder.path().join("data.csv"), csv).unwrap();
        std::fs::write(
            folder.path().join("schema.toml"),
            "scale = \"symmetric\"\n[label]\ncolumn = \"label\"\nclasses = [\"no\", \"yes\"]\n\
             [[feature]]\ncolumn = \"a\"\nrange = [0, 1]\n[[feature]]\ncolumn = \"b\"\nrange = [0, 1]\n\
             [[feature]]\ncolumn = \"color\"\nvalues = [\"red\", \"blue\"]\n",
        )
        .unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `geodp` in this folder.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_geodp"));
        command.current_dir(self.folder.path()).args(args);
        command
    }

    pub(crate) fn geodp(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Flags of a training on the bench's data into `out`.
    pub(crate) fn train<'a>(&self, out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let mut args = vec!["train", "--data", "data.csv", "--schema", "schema.toml", "--out", out];
        args.extend(["--threads", "1", "--batch", "64", "--learning-rate", "1"]);
        args.extend(more);
        args
    }
}

/// Standard error as text.
pub(crate) fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
