//! What others reached, and what their ε means.

use super::Set;

/// What others reached without public data, and what their ε means.
pub(super) struct Published {
    set: Set,
    pub(super) epsilon: f64,
    pub(super) percent: f64,
    pub(super) who: &'static str,
    pub(super) accounting: &'static str,
}

const SHUFFLED: &str = "shuffled batches accounted as Poisson";
const ACCEPTED: &str = "accepted steps only: not sound";
const SOUND: &str = "Poisson, as drawn";

const fn published(
    set: Set,
    epsilon: f64,
    percent: f64,
    who: &'static str,
    accounting: &'static str,
) -> Published {
    Published { set, epsilon, percent, who, accounting }
}

const PUBLISHED: [Published; 16] = [
    published(Set::Mnist, 2.93, 98.1, "Papernot 2021, tanh CNN", SHUFFLED),
    published(Set::Mnist, 3.0, 98.7, "Tramèr & Boneh 2021, scattering", SHUFFLED),
    published(Set::Mnist, 1.0, 97.93, "DPSUR 2024", ACCEPTED),
    published(Set::Mnist, 2.0, 98.70, "DPSUR 2024", ACCEPTED),
    published(Set::Mnist, 3.0, 98.88, "DPSUR 2024", ACCEPTED),
    published(Set::FashionMnist, 2.7, 86.1, "Papernot 2021, tanh CNN", SHUFFLED),
    published(Set::FashionMnist, 3.0, 89.7, "Tramèr & Boneh 2021, scattering", SHUFFLED),
    published(Set::FashionMnist, 1.0, 88.38, "DPSUR 2024", ACCEPTED),
    published(Set::FashionMnist, 2.0, 89.34, "DPSUR 2024", ACCEPTED),
    published(Set::FashionMnist, 3.0, 89.71, "DPSUR 2024", ACCEPTED),
    published(Set::Cifar10, 3.0, 69.3, "Tramèr & Boneh 2021, scattering + CNN", SHUFFLED),
    published(Set::Cifar10, 1.0, 56.8, "De 2022, WRN-16-4", SOUND),
    published(Set::Cifar10, 2.0, 62.9, "De 2022, WRN-16-4", SOUND),
    published(Set::Cifar10, 3.0, 69.2, "De 2022, WRN-16-4", SOUND),
    published(Set::Cifar10, 3.0, 70.83, "DPSUR 2024", ACCEPTED),
    published(Set::Cifar10, 1.0, 72.5, "DP-RandP 2023, random-process pretraining", SOUND),
];

/// What was published, by what its ε means, in the order of their legend.
pub(super) const KINDS: [(&str, &str); 3] = [
    ("published", SOUND),
    ("published, shuffled as Poisson", SHUFFLED),
    ("published, not sound", ACCEPTED),
];

/// What was published on a set.
pub(super) fn on(set: Set) -> impl Iterator<Item = &'static Published> {
    PUBLISHED.iter().filter(move |p| p.set == set)
}

/// (ε, accuracy in %) of what was published on a set under such an accounting.
pub(super) fn points(set: Set, accounting: &str) -> Vec<(f64, f64)> {
    on(set).filter(|p| p.accounting == accounting).map(|p| (p.epsilon, p.percent)).collect()
}
