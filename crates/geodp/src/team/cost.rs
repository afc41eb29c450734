//! What a step of several processes costs beside its computing: a model on paper, not a measurement.
//!
//! With d parameters, B records a step, P processes, bandwidth β bytes/s and latency λ:
//!
//! | part | bytes of rank 0 | time |
//! |---|---|---|
//! | weights, one broadcast of f32 | 4d | ⌈log₂ P⌉·(λ + 4d/β) |
//! | sums, one reduction of i64 | 8d | ⌈log₂ P⌉·(λ + 8d/β) |
//! | requests and answers, one each per other process | 12·B·(1 − 1/P) | 2(P − 1)·λ + bytes/β |
//! | computing, at R records/s on each process | | B/(R·P) |
//!
//! Nothing is overlapped, so the model is an upper bound of what the link costs on a quiet network.
//! Records are taken to be evenly spread.

use serde::Serialize;

/// A network between processes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Network {
    /// Bytes a second.
    pub bandwidth: f64,
    /// Seconds of a message without content.
    pub latency: f64,
}

/// What one step is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepSize {
    /// d.
    pub dim: u64,
    /// B.
    pub batch: u64,
    /// Records a second that one process computes.
    pub records_per_second: f64,
}

/// What the model says of one step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StepCost {
    /// P.
    pub processes: u64,
    /// Messages, broadcasts and reductions of rank 0.
    pub messages: u64,
    /// Bytes of rank 0, collective calls counted once.
    pub bytes: u64,
    /// Seconds of computing.
    pub computing: f64,
    /// Seconds on the link.
    pub link: f64,
}

impl StepCost {
    /// The model's step over P processes.
    pub fn of(step: StepSize, network: Network, processes: u64) -> Self {
        let p = processes.max(1);
        let (others, rounds) = (p - 1, f64::from(p.next_power_of_two().trailing_zeros()));
        let vectors = if others == 0 { 0 } else { 12 * step.dim };
        let lists = 12 * (step.batch - step.batch / p);
        let Network { bandwidth, latency } = network;
        let collective = rounds * (2.0 * latency + vectors as f64 / bandwidth);
        let messages = 2.0 * others as f64 * latency + lists as f64 / bandwidth;
        Self {
            processes: p,
            messages: if others == 0 { 0 } else { 2 * others + 2 },
            bytes: vectors + lists,
            computing: step.batch as f64 / (step.records_per_second * p as f64),
            link: if others == 0 { 0.0 } else { collective + messages },
        }
    }

    /// Seconds of the step.
    pub fn seconds(&self) -> f64 {
        self.computing + self.link
    }

    /// The number of processes, up to `most`, with the shortest step: more do not pay.
    pub fn best(step: StepSize, network: Network, most: u64) -> Self {
        let all = (1..=most.max(1)).map(|processes| Self::of(step, network, processes));
        all.min_by(|a, b| a.seconds().total_cmp(&b.seconds()))
            .unwrap_or_else(|| Self::of(step, network, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CNN: StepSize = StepSize { dim: 21_840, batch: 4096, records_per_second: 40_000.0 };
    const ETHERNET: Network = Network { bandwidth: 125e6, latency: 50e-6 };

    #[test]
    fn one_process_has_no_link_and_two_have_what_the_table_says() {
        let one = StepCost::of(CNN, ETHERNET, 1);
        assert_eq!((one.messages, one.bytes, one.link), (0, 0, 0.0));
        assert!((one.seconds() - 0.1024).abs() < 1e-12);
        let two = StepCost::of(CNN, ETHERNET, 2);
        assert_eq!((two.messages, two.bytes), (4, 12 * 21_840 + 12 * 2048));
        let link = 2.0 * 50e-6 + 12.0 * 21_840.0 / 125e6 + 2.0 * 50e-6 + 12.0 * 2048.0 / 125e6;
        assert!((two.link - link).abs() < 1e-12 && (two.computing - 0.0512).abs() < 1e-12);
    }

    #[test]
    fn more_processes_pay_until_the_link_eats_them() {
        let best = StepCost::best(CNN, ETHERNET, 1000);
        assert!((4..200).contains(&best.processes), "{best:?}");
        let slow = Network { bandwidth: 1e5, ..ETHERNET };
        assert_eq!(StepCost::best(CNN, slow, 1000).processes, 1);
    }
}
