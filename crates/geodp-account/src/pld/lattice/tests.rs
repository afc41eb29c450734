//! Both lattices stay on their side of the release, on even and on widening cells.

use super::*;
use crate::event::Release;
use crate::pld::loss::Direction;

/// H(ε) of the losses of a lattice up to `most`.
fn hockey_stick(lattice: &Lattice, h: f64, epsilon: f64, most: f64) -> f64 {
    let node = |at: usize| lattice.offset + lattice.places[at] as f64 * h;
    let masses = lattice.ln_mass.iter().enumerate().filter(|(at, _)| node(*at) <= most);
    masses.map(|(at, mass)| mass.exp() * -(epsilon - node(at)).min(0.0).exp_m1()).sum()
}

/// The places are all at the peak and ever further apart beyond, but never by more than a share of
/// their distance.
#[test]
fn cells_widen_with_their_distance() {
    let mesh = Mesh { step: 1.0, core: Some(5) };
    let places = mesh.places(-33, 100_000);
    assert!(places[0] <= -33 && places[places.len() - 1] >= 100_000 && places.contains(&0));
    assert!(places[1] > -33 && places[places.len() - 2] < 100_000);
    assert!((-10..=10).all(|place| places.contains(&place)));
    for ends in places.windows(2) {
        let (width, distance) = (ends[1] - ends[0], ends[0].abs().min(ends[1].abs()));
        assert!(width >= 1 && (width == 1 || width * 5 <= distance), "{ends:?}");
    }
    assert!(places.len() < 120, "{}", places.len());
    assert_eq!(Mesh::even(1.0).places(-2, 3).to_vec(), [-2, -1, 0, 1, 2, 3]);
}

/// H(ε) of the release itself: P − e^ε·Q of the losses above ε.
fn true_hockey_stick(loss: &Loss, rises: bool, epsilon: f64) -> f64 {
    let (from, to) = loss.x_range(38.0);
    let x = loss.x_of(epsilon).clamp(from, to);
    let above = if rises { loss.mass(x, to) } else { loss.mass(from, x) };
    above.difference - above.q * epsilon.exp_m1()
}

/// On widening cells, too, the upper lattice dominates the release and the release the lower one,
/// at every ε: on points, between them, near the peak and far out.
#[test]
fn widening_cells_stay_on_their_side() {
    let releases = [
        Release::Gaussian { mu: 1.0 },
        Release::Sampled { rate: 2.56e-4, sigma: 0.7 },
        Release::Sampled { rate: 1e-3, sigma: 0.45 },
        Release::Sampled { rate: 0.1, sigma: 1.2 },
        Release::SampledReplace { rate: 0.01, sigma: 0.8 },
    ];
    for release in releases {
        for direction in [Direction::Remove, Direction::Add] {
            let loss = Loss::new(release, direction);
            let rises = loss.at(1.0) > loss.at(0.0);
            let peak = loss.peak_width();
            for (cells, core) in [(4.0, 4), (10.0, 9), (40.0, 30)] {
                let h = peak / cells;
                let LatticePair { upper, lower } =
                    LatticePair::new(&loss, Mesh { step: h, core: Some(core) }, 9.0);
                let name = format!("{release:?} {direction:?} {core}");
                let gap = |epsilon: f64| {
                    let truth = true_hockey_stick(&loss, rises, epsilon);
                    let most = hockey_stick(&upper, h, epsilon, f64::INFINITY) + upper.infinite;
                    let least = hockey_stick(&lower, h, epsilon, f64::INFINITY);
                    let room = 1e-11 * truth + 1e-18;
                    assert!(most >= truth - room, "{name} at {epsilon}: {most} < {truth}");
                    assert!(least <= truth + room, "{name} at {epsilon}: {least} > {truth}");
                    most - least
                };
                let mut widest = 0.0f64;
                for place in -160..160 {
                    widest = widest.max(gap(upper.offset + 0.13 * h * f64::from(place)));
                }
                for place in upper.places.windows(2) {
                    for share in [0.0, 0.21, 0.5, 0.83] {
                        let place = place[0] as f64 + share * (place[1] - place[0]) as f64;
                        gap(upper.offset + h * place);
                    }
                }
                assert!(widest <= h, "{name}: {widest} apart");
            }
        }
    }
}

/// Where so much is cut off that the left tail weighs, the upper lattice still dominates it. The
/// right tail, which counts as infinite loss, is left out on both sides: it would hide the left one.
#[test]
fn a_cut_left_tail_stays_dominated() {
    let releases = [
        Release::Gaussian { mu: 1.0 },
        Release::Sampled { rate: 0.1, sigma: 0.8 },
        Release::SampledReplace { rate: 0.2, sigma: 1.0 },
    ];
    for release in releases {
        for direction in [Direction::Remove, Direction::Add] {
            let loss = Loss::new(release, direction);
            let (h, fine) = (0.05, 0.0005);
            let truth = LatticePair::new(&loss, Mesh::even(fine), 9.0).lower;
            for z in [0.7, 1.5] {
                let coarse = LatticePair::new(&loss, Mesh::even(h), z).upper;
                let most = loss_range(&loss, z).1 - fine;
                let start = coarse.offset + coarse.places[0] as f64 * h;
                for place in -20..40 {
                    let epsilon = start + 0.1 * h * f64::from(place);
                    let ours = hockey_stick(&coarse, h, epsilon, f64::INFINITY);
                    let least = hockey_stick(&truth, fine, epsilon, most);
                    assert!(
                        ours >= least,
                        "{release:?}, {direction:?}, z = {z}, ε = {epsilon}: {ours} < {least}"
                    );
                }
            }
        }
    }
}
