//! Which records are whose: the population of a simulated federation.
//!
//! | shards | each client has | kept in memory |
//! |---|---|---|
//! | IID | so many records, dealt at random, none twice | the deal |
//! | Dirichlet(α) (Hsu et al. 2019, [arXiv:1909.06335](https://arxiv.org/abs/1909.06335)) | the same, its classes mixed by a draw from Dirichlet(α) | the deal |
//! | drawn | so many records drawn with repetition by its number alone | nothing, whatever the population |

use geodp_nn::{SplitMix64, permutation};

/// The records of every client.
#[derive(Debug, Clone, PartialEq)]
pub enum Shards {
    /// Client i has rows i·each … (i + 1)·each of the deal.
    Dealt {
        /// Record numbers, client after client.
        rows: Vec<u32>,
        /// Records of a client.
        each: usize,
    },
    /// Client i has records drawn by a generator that starts at i.
    Drawn {
        /// How many clients.
        clients: u64,
        /// Records of a client.
        each: usize,
        /// Records there are.
        records: usize,
    },
}

impl Shards {
    /// Deals `records` records to `clients` clients; what does not come out even is left over.
    pub fn iid(records: usize, clients: usize, seed: u64) -> Self {
        let each = records / clients.max(1);
        let mut rows: Vec<u32> =
            permutation(records, seed).into_iter().map(|row| row as u32).collect();
        rows.truncate(each * clients);
        Self::Dealt { rows, each }
    }

    /// Deals records so that each client's classes are mixed by a draw from Dirichlet(`alpha`), as long
    /// as records of a class last. `alpha` is in (0, 1).
    pub fn dirichlet(
        labels: &[u32],
        classes: usize,
        clients: usize,
        alpha: f64,
        seed: u64,
    ) -> Self {
        let each = labels.len() / clients.max(1);
        let mut left = vec![Vec::new(); classes];
        for row in permutation(labels.len(), seed) {
            left[labels[row] as usize].push(row as u32);
        }
        let mut random = SplitMix64::new(seed ^ 0x5eed);
        let mut rows = Vec::with_capacity(each * clients);
        for _ in 0..clients {
            let mix: Vec<f64> = (0..classes).map(|_| gamma(alpha, &mut random)).collect();
            for _ in 0..each {
                let class = pick(&mix, &left, &mut random);
                rows.extend(left[class].pop());
            }
        }
        Self::Dealt { rows, each }
    }

    /// How many clients there are.
    pub fn clients(&self) -> u64 {
        match self {
            Self::Dealt { rows, each } => (rows.len() / each.max(&1)) as u64,
            Self::Drawn { clients, .. } => *clients,
        }
    }

    /// The records of a client.
    pub fn rows(&self, client: u32) -> Vec<u32> {
        match self {
            Self::Dealt { rows, each } => {
                rows.iter().skip(client as usize * each).take(*each).copied().collect()
            }
            Self::Drawn { each, records, .. } => {
                let mut random = SplitMix64::new(u64::from(client));
                (0..*each).map(|_| random.below(*records) as u32).collect()
            }
        }
    }
}

/// Uniform in (0, 1).
fn uniform(random: &mut SplitMix64) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// A draw from Gamma(α, 1) for α < 1 (Ahrens and Dieter 1974, algorithm GS).
fn gamma(alpha: f64, random: &mut SplitMix64) -> f64 {
    let bound = 1.0 + alpha / std::f64::consts::E;
    loop {
        let (place, coin) = (bound * uniform(random), uniform(random));
        if place <= 1.0 {
            let x = place.powf(1.0 / alpha);
            if coin <= (-x).exp() {
                return x;
            }
        } else {
            let x = -((bound - place) / alpha).ln();
            if coin <= x.powf(alpha - 1.0) {
                return x;
            }
        }
    }
}

/// A class by its share of the mix, among those with records left; the fullest if none of the mix has.
fn pick(mix: &[f64], left: &[Vec<u32>], random: &mut SplitMix64) -> usize {
    let share = |class: usize| if left[class].is_empty() { 0.0 } else { mix[class] };
    let total: f64 = (0..mix.len()).map(share).sum();
    let mut place = total * uniform(random);
    for class in 0..mix.len() {
        if share(class) > 0.0 && place <= share(class) {
            return class;
        }
        place -= share(class);
    }
    (0..left.len()).max_by_key(|class| left[*class].len()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dealt_once(shards: &Shards, records: usize) -> bool {
        let mut all: Vec<u32> =
            (0..shards.clients() as u32).flat_map(|client| shards.rows(client)).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        count == records && all.len() == records
    }

    #[test]
    fn every_record_is_dealt_once() {
        let labels: Vec<u32> = (0..1000).map(|row| row % 10).collect();
        assert!(dealt_once(&Shards::iid(1000, 50, 1), 1000));
        assert!(dealt_once(&Shards::dirichlet(&labels, 10, 50, 0.3, 1), 1000));
        assert_eq!(Shards::iid(1003, 50, 1).rows(49).len(), 20);
    }

    /// The mean share of a client's largest class: 1/10 of 20 records and some luck if IID, most of them
    /// under Dirichlet(0.3).
    #[test]
    fn dirichlet_clients_have_few_classes() {
        let labels: Vec<u32> = (0..10_000).map(|row| row % 10).collect();
        let largest = |shards: &Shards| {
            let of = |client| {
                let mut counts = [0; 10];
                shards
                    .rows(client)
                    .iter()
                    .for_each(|row| counts[labels[*row as usize] as usize] += 1);
                f64::from(counts.into_iter().max().unwrap_or(0)) / 20.0
            };
            (0..500).map(of).sum::<f64>() / 500.0
        };
        assert!(largest(&Shards::iid(10_000, 500, 1)) < 0.3);
        assert!(largest(&Shards::dirichlet(&labels, 10, 500, 0.3, 1)) > 0.45);
    }

    /// E = α and variance = α: 5.5 standard errors.
    #[test]
    fn gamma_has_its_moments() {
        let mut random = SplitMix64::new(3);
        let (alpha, count) = (0.3, 40_000);
        let draws: Vec<f64> = (0..count).map(|_| gamma(alpha, &mut random)).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(count);
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(count);
        assert!((mean - alpha).abs() < 5.5 * (alpha / f64::from(count)).sqrt(), "{mean}");
        // The fourth central moment of Gamma(α) is 3α² + 6α.
        let error = ((3.0 * alpha * alpha + 6.0 * alpha - alpha * alpha) / f64::from(count)).sqrt();
        assert!((variance - alpha).abs() < 5.5 * error, "{variance}");
    }

    #[test]
    fn a_drawn_population_needs_no_memory() {
        let shards = Shards::Drawn { clients: 1 << 31, each: 7, records: 100 };
        assert_eq!(shards.rows(u32::MAX / 2), shards.rows(u32::MAX / 2));
        assert_ne!(shards.rows(5), shards.rows(6));
        assert!(shards.rows(9).iter().all(|row| *row < 100) && shards.rows(9).len() == 7);
    }
}
