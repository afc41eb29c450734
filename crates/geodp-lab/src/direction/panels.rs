//! Which points Figures 1, 3 and 4 have: a panel varies one of σ, d, B and β and keeps the rest.

use serde::{Deserialize, Serialize};

/// What a panel varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vary {
    /// σ.
    Sigma,
    /// d.
    Dim,
    /// B.
    Batch,
    /// β.
    Beta,
}

/// One point: a perturbation of a mean gradient.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// d: dimensions picked from the gradient.
    pub dim: usize,
    /// B: gradients in the mean.
    pub batch: u64,
    /// σ.
    pub sigma: f64,
    /// β of GeoDP.
    pub beta: f64,
}

impl Point {
    /// The value on the panel's axis.
    pub fn at(&self, vary: Vary) -> f64 {
        match vary {
            Vary::Sigma => self.sigma,
            Vary::Dim => self.dim as f64,
            Vary::Batch => self.batch as f64,
            Vary::Beta => self.beta,
        }
    }
}

/// A plot of the paper.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// `a` … `i` within its figure.
    pub letter: char,
    /// What is on its axis.
    pub vary: Vary,
    /// Its points, from left to right.
    pub points: Vec<Point>,
}

const SIGMAS: [f64; 6] = [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];
const DIMS: [usize; 6] = [500, 1000, 2000, 5000, 10_000, 20_000];
const BATCHES: [u64; 6] = [512, 1024, 2048, 4096, 8192, 16384];
/// The paper's six from 0.1 on; three smaller ones show where the curves cross.
const BETAS: [f64; 9] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0];

fn sigma_panel(letter: char, beta: f64) -> Panel {
    let point = |&sigma: &f64| Point { dim: 5000, batch: 2048, sigma, beta };
    Panel { letter, vary: Vary::Sigma, points: SIGMAS.iter().map(point).collect() }
}

fn dim_panel(letter: char, beta: f64) -> Panel {
    let point = |&dim: &usize| Point { dim, batch: 4096, sigma: 8.0, beta };
    Panel { letter, vary: Vary::Dim, points: DIMS.iter().map(point).collect() }
}

fn batch_panel(letter: char, beta: f64) -> Panel {
    let point = |&batch: &u64| Point { dim: 10_000, batch, sigma: 8.0, beta };
    Panel { letter, vary: Vary::Batch, points: BATCHES.iter().map(point).collect() }
}

fn beta_panel(letter: char, dim: usize) -> Panel {
    let point = |&beta: &f64| Point { dim, batch: 4096, sigma: 8.0, beta };
    Panel { letter, vary: Vary::Beta, points: BETAS.iter().map(point).collect() }
}

/// Figure 1: both errors of both mechanisms over σ, at β = 0.1.
pub fn figure1() -> Vec<Panel> {
    vec![sigma_panel('a', 0.1)]
}

/// Figure 3: σ, d and B, at β = 1, 0.1 and 0.01 each.
pub fn figure3() -> Vec<Panel> {
    let panels: [fn(char, f64) -> Panel; 3] = [sigma_panel, dim_panel, batch_panel];
    let betas = [1.0, 0.1, 0.01];
    let all = panels.iter().flat_map(|make| betas.iter().map(move |beta| (make, *beta)));
    ('a'..='i').zip(all).map(|(letter, (make, beta))| make(letter, beta)).collect()
}

/// Figure 4: β, at d = 20000, 10000 and 5000.
pub fn figure4() -> Vec<Panel> {
    ('a'..='c').zip([20_000, 10_000, 5000]).map(|(letter, dim)| beta_panel(letter, dim)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_panels() {
        let all = figure3();
        assert_eq!(all.len(), 9);
        assert!(all.iter().all(|p| p.points.len() == 6));
        assert_eq!((all[4].letter, all[4].vary, all[4].points[2].beta), ('e', Vary::Dim, 0.1));
        assert_eq!(all[8].points[5], Point { dim: 10_000, batch: 16384, sigma: 8.0, beta: 0.01 });
        assert_eq!(
            figure4().iter().map(|p| p.points[0].dim).collect::<Vec<_>>(),
            [20_000, 10_000, 5000]
        );
        assert_eq!(figure1()[0].points.len(), 6);
    }
}
