//! The second implementation: one function, written straight from the formulas, that knows nothing
//! of plans and strategies. It shares the noise source, so results can be compared.

use super::{Points, norm};
use geodp::engine::Engine;
use geodp::optimizer::OptimizerKind;
use geodp::params::{ClipKind, Mechanism, PlanParams};
use geodp_mechanism::noise::Stream;
use geodp_mechanism::sphere::{to_rectangular, to_spherical};
use geodp_mechanism::{Grid, NoiseSource, Purpose, RoundedNormal};
use std::f64::consts::PI;

/// Weights after all steps, and how many steps were accepted.
pub(crate) fn train(points: &Points, params: &PlanParams, noise: &NoiseSource) -> (Vec<f32>, u64) {
    let records = points.facts().records as usize;
    let (privacy, train) = (&params.privacy, &params.train);
    let c = privacy.clip_norm.unwrap();
    let sigma = privacy.noise_multiplier.unwrap();
    let b = train.batch.unwrap() as f64;
    let eta = train.learning_rate.unwrap();
    let dim = points.facts().dim;
    let mut w = vec![0.0f32; dim];
    let (mut first, mut second) = (vec![0.0f64; dim], vec![0.0f64; dim]);
    let (mut t, mut phi, mut k, mut accepted) = (0, 0.0, 0.0, 0);
    for step in 0..train.steps.unwrap() {
        let stream = |purpose, chunk| noise.stream(purpose, step, chunk).unwrap();
        let q = b / records as f64;
        let mut sum = vec![0.0; dim];
        let mut bound = c;
        if let Some(is) = &privacy.importance {
            let most = is.candidate_rate.unwrap();
            if step % is.refresh.unwrap() == 0 {
                let sample = poisson(stream(Purpose::Importance, 2), records, q);
                let total: f64 = sample
                    .iter()
                    .map(|i| length(privacy.clip, c, norm(&points.gradient(&w, *i))))
                    .sum();
                let sigma = is.noise_multiplier.unwrap();
                let noisy =
                    total + c * noise_on_grid(stream(Purpose::Importance, 1), sigma, 26, 1)[0];
                k = (noisy / q).max(b * c / most).min(records as f64 * c);
            }
            bound = k / records as f64;
            let mut coins = stream(Purpose::Importance, 0);
            for i in poisson(stream(Purpose::Sampling, 0), records, b * c / k) {
                let g = points.gradient(&w, i);
                if coins.uniform() < length(privacy.clip, c, norm(&g)) / c {
                    sum.iter_mut().zip(&g).for_each(|(s, x)| *s += bound * x / norm(&g));
                }
            }
        } else {
            for i in poisson(stream(Purpose::Sampling, 0), records, q) {
                let g = points.gradient(&w, i);
                let scale = length(privacy.clip, c, norm(&g)) / norm(&g);
                sum.iter_mut().zip(&g).for_each(|(s, x)| *s += scale * x);
            }
        }
        let mut g: Vec<f64> = sum.iter().map(|s| s / b).collect();
        let mut normals = vec![0.0; dim];
        if privacy.mechanism == Mechanism::Dp {
            let noise = noise_on_grid(stream(Purpose::Coordinates, 0), sigma, 30, dim);
            g.iter_mut().zip(&noise).for_each(|(g, n)| *g += bound / b * n);
        } else {
            let mut sphere = to_spherical(&g).unwrap();
            sphere.magnitude += sigma * bound / b * stream(Purpose::Magnitude, 0).normal();
            stream(Purpose::Angles, 0).fill_normals(&mut normals[..dim - 1]);
            let spread =
                ((dim + 2) as f64).sqrt() * privacy.mechanism.beta().unwrap() * PI * sigma / b;
            sphere.angles.iter_mut().zip(&normals).for_each(|(a, n)| *a += spread * n);
            g = to_rectangular(&sphere).unwrap();
        }
        let before = (w.clone(), first.clone(), second.clone(), t, phi);
        t += 1;
        for z in 0..dim {
            let move_by = match train.optimizer.unwrap() {
                OptimizerKind::Sgd => g[z],
                OptimizerKind::Momentum { momentum } => {
                    first[z] = momentum * first[z] + g[z];
                    first[z]
                }
                OptimizerKind::Adam(m) | OptimizerKind::AdamBc(m) => {
                    first[z] = m.beta1 * first[z] + (1.0 - m.beta1) * g[z];
                    second[z] = m.beta2 * second[z] + (1.0 - m.beta2) * g[z] * g[z];
                    let mean = first[z] / (1.0 - m.beta1.powi(t));
                    let square = second[z] / (1.0 - m.beta2.powi(t));
                    if matches!(train.optimizer, Some(OptimizerKind::Adam(_))) {
                        mean / (square.sqrt() + m.floor)
                    } else {
                        if z == 0 {
                            let variance = (sigma * bound / b).powi(2);
                            phi = m.beta2 * phi + (1.0 - m.beta2) * variance;
                        }
                        let noise = phi / (1.0 - m.beta2.powi(t));
                        mean / (square - noise).max(m.floor).sqrt()
                    }
                }
            };
            w[z] -= (eta * move_by) as f32;
        }
        if let Some(sur) = &privacy.select {
            let rate = sur.batch as f64 / records as f64;
            let batch = poisson(stream(Purpose::SelectionSampling, 0), records, rate);
            let loss = |w: &[f32]| points.mean_loss(w, &batch).unwrap();
            let change = (loss(&w) - loss(&before.0)).max(-sur.loss_clip).min(sur.loss_clip);
            let noise = noise_on_grid(stream(Purpose::Selection, 0), sur.noise_multiplier, 26, 1);
            let noisy = change + 2.0 * sur.loss_clip * noise[0];
            if noisy < sur.threshold * sur.loss_clip {
                accepted += 1;
            } else {
                (w, first, second, t, phi) = before;
            }
        }
    }
    (w, accepted)
}

/// σ·N(0, 1), rounded to multiples of 2⁻ᴷ, K = `bits`.
fn noise_on_grid(mut stream: Stream, sigma: f64, bits: u32, count: usize) -> Vec<f64> {
    let law = RoundedNormal::new(sigma, Grid::new(bits).unwrap()).unwrap();
    let mut draws = vec![0; count];
    stream.fill_rounded(law, &mut draws);
    draws.iter().map(|draw| *draw as f64 / 2f64.powi(bits as i32)).collect()
}

/// ‖w(n)·g‖ of a gradient of norm n.
fn length(clip: ClipKind, c: f64, n: f64) -> f64 {
    match clip {
        ClipKind::Flat => n.min(c),
        ClipKind::AutoS => c * n / (n + 0.01),
        ClipKind::Psac => c * n / (n + 0.1 / (n + 0.1)),
    }
}

fn poisson(mut stream: Stream, records: usize, rate: f64) -> Vec<u32> {
    let coin = |_: &u32| (stream.word() as f64) < rate * 2f64.powi(64);
    (0..records as u32).filter(coin).collect()
}
