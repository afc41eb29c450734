//! The independent oracle: networks run straight from their description, in double precision, one
//! sample at a time, with plain loops; and random samples.

use geodp_nn::{
    AvgPoolSpec, Conv2dSpec, Grid, GroupNormSpec, LayerSpec, LinearSpec, Loss, MaxPoolSpec,
    Network, NetworkSpec, ResidualSpec, Samples,
};

/// Samples held in memory.
pub(crate) struct Table {
    pub(crate) inputs: Vec<Vec<f32>>,
    pub(crate) labels: Vec<u32>,
}

impl Samples for Table {
    fn len(&self) -> usize {
        self.inputs.len()
    }
    fn input_len(&self) -> usize {
        self.inputs[0].len()
    }
    fn read_input(&self, index: usize, out: &mut [f32]) {
        out.copy_from_slice(&self.inputs[index]);
    }
    fn label(&self, index: usize) -> u32 {
        self.labels[index]
    }
}

/// A small generator for test data.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn unit(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1u64 << 31) as f64
    }
}

pub(crate) fn table(input_len: usize, classes: usize, count: usize, seed: u64) -> Table {
    let mut random = Random(seed.wrapping_mul(2).wrapping_add(1));
    for _ in 0..8 {
        random.unit();
    }
    let inputs = (0..count)
        .map(|_| (0..input_len).map(|_| (4.0 * random.unit() - 2.0) as f32).collect())
        .collect();
    let labels = (0..count).map(|_| (random.unit() * classes as f64) as u32).collect();
    Table { inputs, labels }
}

/// Σ w·g as it is: gradients one by one in floating point, weighed by their norms and added in double precision.
pub(crate) fn weighed_sum(
    network: &Network,
    weights: &[f32],
    data: &dyn Samples,
    batch: &[u32],
    weight_of: &dyn Fn(usize, f64) -> f64,
) -> Vec<f64> {
    let dim = network.dim();
    let (mut rows, mut sum) = (vec![0.0; batch.len() * dim], vec![0.0; dim]);
    network.sample_gradients(weights, data, batch, &mut rows).unwrap();
    for (place, row) in rows.chunks(dim).enumerate() {
        let norm = row.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
        for (sum, &g) in sum.iter_mut().zip(row) {
            *sum += weight_of(place, norm) * f64::from(g);
        }
    }
    sum
}

/// How far a sum on a grid is from the real one, over the length of that.
pub(crate) fn distance(sum: &[i64], grid: Grid, real: &[f64]) -> f64 {
    let off = sum.iter().zip(real).map(|(&n, real)| (n as f64 * grid.step() - real).powi(2));
    (off.sum::<f64>() / real.iter().map(|real| real * real).sum::<f64>()).sqrt()
}

/// Values with a shape.
#[derive(Clone)]
struct Tensor {
    shape: Vec<usize>,
    data: Vec<f64>,
}

impl Tensor {
    fn at(&self, c: usize, y: isize, x: isize) -> f64 {
        let (h, w) = (self.shape[1] as isize, self.shape[2] as isize);
        if y < 0 || x < 0 || y >= h || x >= w {
            return 0.0;
        }
        self.data[c * (h * w) as usize + (y * w + x) as usize]
    }
}

fn planes(shape: [usize; 3], mut f: impl FnMut(usize, usize, usize) -> f64) -> Tensor {
    let mut data = Vec::new();
    for c in 0..shape[0] {
        for y in 0..shape[1] {
            for x in 0..shape[2] {
                data.push(f(c, y, x));
            }
        }
    }
    Tensor { shape: shape.to_vec(), data }
}

fn pool(t: &Tensor, k: usize, s: usize, f: impl Fn(&[f64]) -> f64) -> Tensor {
    let [c, h, w] = t.shape[..] else { panic!("planes") };
    planes([c, (h - k) / s + 1, (w - k) / s + 1], |c, y, x| {
        let mut window = Vec::new();
        for j in 0..k {
            for i in 0..k {
                window.push(t.at(c, (y * s + j) as isize, (x * s + i) as isize));
            }
        }
        f(&window)
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn take(weights: &mut std::slice::Iter<'_, f64>, count: usize) -> Vec<f64> {
    weights.by_ref().take(count).copied().collect()
}

fn run(layers: &[LayerSpec], mut t: Tensor, weights: &mut std::slice::Iter<'_, f64>) -> Tensor {
    for layer in layers {
        t = match layer {
            LayerSpec::Linear(LinearSpec { outputs, bias, .. }) => {
                let n = t.data.len();
                let w = take(weights, outputs * n);
                let b = take(weights, if *bias { *outputs } else { 0 });
                let data = (0..*outputs)
                    .map(|o| {
                        let dot: f64 = (0..n).map(|i| w[o * n + i] * t.data[i]).sum();
                        dot + b.get(o).unwrap_or(&0.0)
                    })
                    .collect();
                Tensor { shape: vec![*outputs], data }
            }
            LayerSpec::Conv2d(Conv2dSpec { outputs, kernel, stride, padding, bias, .. }) => {
                let [c, h, w] = t.shape[..] else { panic!("planes") };
                let (k, s, p) = (*kernel, *stride, *padding);
                let weight = take(weights, outputs * c * k * k);
                let b = take(weights, if *bias { *outputs } else { 0 });
                let shape = [*outputs, (h + 2 * p - k) / s + 1, (w + 2 * p - k) / s + 1];
                planes(shape, |o, y, x| {
                    let mut sum = *b.get(o).unwrap_or(&0.0);
                    for c in 0..c {
                        for j in 0..k {
                            for i in 0..k {
                                let at = ((o * t.shape[0] + c) * k + j) * k + i;
                                let (y, x) = (y * s + j, x * s + i);
                                let (y, x) = (y as isize - p as isize, x as isize - p as isize);
                                sum += weight[at] * t.at(c, y, x);
                            }
                        }
                    }
                    sum
                })
            }
            LayerSpec::MaxPool(MaxPoolSpec { kernel, stride }) => {
                pool(&t, *kernel, stride.unwrap_or(*kernel), |w| {
                    w.iter().copied().fold(f64::NEG_INFINITY, f64::max)
                })
            }
            LayerSpec::AvgPool(AvgPoolSpec { kernel, stride }) => {
                pool(&t, *kernel, stride.unwrap_or(*kernel), mean)
            }
            LayerSpec::GlobalAvgPool => {
                let data: Vec<f64> = t.data.chunks(t.shape[1] * t.shape[2]).map(mean).collect();
                Tensor { shape: vec![t.shape[0]], data }
            }
            LayerSpec::Relu => Tensor { data: t.data.iter().map(|x| x.max(0.0)).collect(), ..t },
            LayerSpec::Tanh => Tensor { data: t.data.iter().map(|x| x.tanh()).collect(), ..t },
            LayerSpec::GroupNorm(GroupNormSpec { groups, .. }) => {
                let [c, h, w] = t.shape[..] else { panic!("planes") };
                let (scale, shift) = (take(weights, c), take(weights, c));
                let len = c / groups * h * w;
                let mut data = Vec::new();
                for (g, group) in t.data.chunks(len).enumerate() {
                    let m = mean(group);
                    let variance =
                        group.iter().map(|x| (x - m) * (x - m)).sum::<f64>() / len as f64;
                    for (i, x) in group.iter().enumerate() {
                        let c = g * (c / groups) + i / (h * w);
                        data.push((x - m) / (variance + 1e-5).sqrt() * scale[c] + shift[c]);
                    }
                }
                Tensor { data, ..t }
            }
            LayerSpec::Residual(ResidualSpec { body, shortcut, .. }) => {
                let a = run(body, t.clone(), weights);
                let b = run(shortcut, t, weights);
                let data = a.data.iter().zip(&b.data).map(|(a, b)| a + b).collect();
                Tensor { data, ..a }
            }
            LayerSpec::Flatten => Tensor { shape: vec![t.data.len()], data: t.data },
        };
    }
    t
}

/// Loss of one sample and its class probabilities.
pub(crate) fn loss(
    spec: &NetworkSpec,
    weights: &[f64],
    input: &[f32],
    label: u32,
) -> (f64, Vec<f64>) {
    let data = input.iter().map(|&x| f64::from(x)).collect();
    let x = Tensor { shape: spec.input.clone(), data };
    let z = run(&spec.layers, x, &mut weights.iter()).data;
    let z = match spec.loss {
        Loss::SoftmaxCrossEntropy => z,
        Loss::SigmoidCrossEntropy => vec![0.0, z[0]],
        Loss::Squared | Loss::Huber => panic!("numbers have a reference of their own"),
    };
    let top = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = z.iter().map(|z| (z - top).exp()).sum();
    let probabilities: Vec<f64> = z.iter().map(|z| (z - top).exp() / total).collect();
    (total.ln() + top - z[label as usize], probabilities)
}

/// ∂loss/∂weights[at] by central differences, or none where a kink makes two steps disagree.
pub(crate) fn slope(
    spec: &NetworkSpec,
    weights: &[f64],
    input: &[f32],
    label: u32,
    at: usize,
) -> Option<f64> {
    let mut moved = weights.to_vec();
    let mut by = |h: f64| {
        moved[at] = weights[at] + h;
        let up = loss(spec, &moved, input, label).0;
        moved[at] = weights[at] - h;
        (up - loss(spec, &moved, input, label).0) / (2.0 * h)
    };
    let (coarse, fine) = (by(1e-4), by(2e-5));
    ((coarse - fine).abs() <= 1e-6 + 1e-5 * fine.abs()).then_some(fine)
}
