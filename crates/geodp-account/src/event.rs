//! Events: what a training run did to its data, as immutable values.
//!
//! An event says nothing of adjacency or of how it is accounted; its meaning
//! never changes, so a ledger of events can be read by a better accountant
//! later. Every noise multiplier is (noise std) / C, where C bounds the norm of
//! one record's contribution.
//!
//! Accountants see events in a normal form: a short list of distinct
//! [`Release`]s, each with its count, in an order that does not depend on the
//! order of composition.

use crate::error::{positive, probability};
use crate::{Adjacency, Error};
use serde::{Deserialize, Serialize};

/// The largest number of compositions accounted.
pub const MOST_STEPS: u64 = 1 << 40;

/// Something that happened to the private data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A sum over all records, released with Gaussian noise of std σ·C.
    Gaussian {
        /// σ.
        noise_multiplier: f64,
    },
    /// The same over a Poisson sample: each record takes part with probability q.
    SampledGaussian {
        /// q.
        sample_rate: f64,
        /// σ.
        noise_multiplier: f64,
    },
    /// One pass over shuffled batches of fixed size: each record is in exactly
    /// one noisy sum. Which batch is decided without noise, so shuffling does
    /// not amplify privacy here; adding a record would move every batch, so only adjacencies that keep
    /// the number of records make sense of it.
    ShuffledEpoch {
        /// σ of each batch's sum.
        noise_multiplier: f64,
    },
    /// Several events, one after another, each of which may depend on the results before.
    Composed {
        /// The events.
        events: Vec<Event>,
    },
    /// One event, `count` times.
    Repeated {
        /// The event.
        event: Box<Event>,
        /// How many times.
        count: u64,
    },
    /// GeoDP's release of magnitude and direction, each with the noise of `event`. The
    /// direction's sensitivity is assumed, not enforced, so no accountant charges it:
    /// an [`crate::Account`] says what can be said.
    Geometric {
        /// The release its noise would be, were the sensitivity enforced.
        event: Box<Event>,
        /// Bounding factor β.
        beta: f64,
        /// Dimension d of the gradient.
        dim: u64,
    },
    /// Magnitude and direction released separately, with the direction's sensitivity enforced: a
    /// post-processing of `event` except with probability `miss` for each neighbour. Accountants
    /// charge `event`, and (1 + e^ε)·`miss` on δ.
    Polar {
        /// The Gaussian release that pays for magnitude and direction together.
        event: Box<Event>,
        /// δ₁ = Φ(−t): the chance that the public radius is not below the private one.
        miss: f64,
    },
    /// A release with no noise at all: non-private training.
    NoPrivacy,
}

impl Event {
    /// Poisson-sampled Gaussian at rate q with multiplier σ.
    pub fn sampled_gaussian(sample_rate: f64, noise_multiplier: f64) -> Self {
        Event::SampledGaussian { sample_rate, noise_multiplier }
    }

    /// Gaussian release with multiplier σ.
    pub fn gaussian(noise_multiplier: f64) -> Self {
        Event::Gaussian { noise_multiplier }
    }

    /// GeoDP's release with bounding factor `beta` in `dim` dimensions.
    pub fn geometric(event: Event, beta: f64, dim: u64) -> Self {
        Event::Geometric { event: Box::new(event), beta, dim }
    }

    /// The certified polar release: `event` except with probability `miss`.
    pub fn polar(event: Event, miss: f64) -> Self {
        Event::Polar { event: Box::new(event), miss }
    }

    /// This event `count` times.
    pub fn repeated(self, count: u64) -> Self {
        Event::Repeated { event: Box::new(self), count }
    }

    /// These events together.
    pub fn composed(events: Vec<Event>) -> Self {
        Event::Composed { events }
    }

    /// Shows this event, and every one inside it, to `look`.
    pub(crate) fn visit(&self, look: &mut impl FnMut(&Event)) {
        look(self);
        match self {
            Event::Composed { events } => events.iter().for_each(|event| event.visit(look)),
            Event::Repeated { event, .. }
            | Event::Geometric { event, .. }
            | Event::Polar { event, .. } => event.visit(look),
            _ => {}
        }
    }

    /// Whether this event, or one inside it, is one of those.
    pub(crate) fn any(&self, wanted: fn(&Event) -> bool) -> bool {
        let mut found = false;
        self.visit(&mut |event| found |= wanted(event));
        found
    }

    /// GeoDP as its conditional claim counts it: magnitude and direction are two Gaussian releases of
    /// one σ each, and amount to one of σ/√2.
    ///
    /// # Errors
    /// GeoDP over a composed event.
    pub fn as_two_releases(&self) -> Result<Event, Error> {
        self.with_geometric_noise_divided(std::f64::consts::SQRT_2)
    }

    /// GeoDP as published: magnitude and direction count as one release of σ.
    pub(crate) fn as_published(&self) -> Result<Event, Error> {
        self.with_geometric_noise_divided(1.0)
    }

    /// Every release of GeoDP read as a plain Gaussian of σ/`by`; the rest as it is.
    fn with_geometric_noise_divided(&self, by: f64) -> Result<Event, Error> {
        let read = |event: &Event| event.with_geometric_noise_divided(by);
        Ok(match self {
            Event::Geometric { event, .. } => match event.as_ref() {
                Event::Gaussian { noise_multiplier } => Event::gaussian(noise_multiplier / by),
                Event::SampledGaussian { sample_rate, noise_multiplier } => {
                    Event::sampled_gaussian(*sample_rate, noise_multiplier / by)
                }
                Event::ShuffledEpoch { noise_multiplier } => {
                    Event::ShuffledEpoch { noise_multiplier: noise_multiplier / by }
                }
                _ => {
                    return Err(Error::Unsupported {
                        event: "GeoDP over a composed event".into(),
                        advice: "wrap each elementary release in its own Event::Geometric",
                    });
                }
            },
            Event::Composed { events } => {
                Event::composed(events.iter().map(read).collect::<Result<_, _>>()?)
            }
            Event::Repeated { event, count } => read(event)?.repeated(*count),
            other => other.clone(),
        })
    }

    /// Checks every parameter in the event.
    pub fn check(&self) -> Result<(), Error> {
        match self {
            Event::Gaussian { noise_multiplier } | Event::ShuffledEpoch { noise_multiplier } => {
                positive("noise multiplier", *noise_multiplier).map(drop)
            }
            Event::SampledGaussian { sample_rate, noise_multiplier } => {
                probability("sample rate", *sample_rate)?;
                positive("noise multiplier", *noise_multiplier).map(drop)
            }
            Event::Composed { events } => events.iter().try_for_each(Event::check),
            Event::Repeated { event, .. } => event.check(),
            Event::Geometric { event, beta, .. } => {
                if !(*beta > 0.0 && *beta <= 1.0) {
                    return Err(Error::OutOfRange {
                        name: "beta",
                        range: "in (0, 1]",
                        found: *beta,
                    });
                }
                event.check()
            }
            Event::Polar { event, miss } => {
                probability("chance of a miss", *miss)?;
                match event.as_ref() {
                    Event::Gaussian { .. } | Event::SampledGaussian { .. } => event.check(),
                    _ => Err(Error::Unsupported {
                        event: "the certified polar release of anything but a Gaussian".into(),
                        advice: "wrap each elementary release in its own Event::Polar",
                    }),
                }
            }
            Event::NoPrivacy => Ok(()),
        }
    }
}

/// An elementary release in the accountants' normal form, adjacency applied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Release {
    /// N(μ, 1) against N(0, 1); many compose to one with μ² = Σ μᵢ².
    Gaussian {
        /// Sensitivity over noise.
        mu: f64,
    },
    /// (1−q)N(0, σ²) + qN(1, σ²) against N(0, σ²), and the reverse.
    Sampled { rate: f64, sigma: f64 },
    /// (1−q)N(0, σ²) + qN(1, σ²) against (1−q)N(0, σ²) + qN(−1, σ²).
    SampledReplace { rate: f64, sigma: f64 },
}

impl Release {
    fn key(&self) -> (u8, u64, u64) {
        match *self {
            Release::Gaussian { .. } => (0, 0, 0),
            Release::Sampled { rate, sigma } => (1, rate.to_bits(), sigma.to_bits()),
            Release::SampledReplace { rate, sigma } => (2, rate.to_bits(), sigma.to_bits()),
        }
    }
}

/// Distinct releases with their counts: what has been composed so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Releases {
    /// Sorted by [`Release::key`]; Gaussian releases are merged into one with count 1.
    pub(crate) parts: Vec<(Release, u64)>,
    /// A release without noise was among them.
    pub(crate) unprotected: bool,
    /// Probability that a release was not what is in `parts`, summed over releases.
    pub(crate) misses: f64,
    compositions: u64,
}

impl Releases {
    /// Adds `event`, `count` times; on error nothing has been added.
    pub(crate) fn add(
        &mut self,
        event: &Event,
        count: u64,
        adjacency: Adjacency,
    ) -> Result<(), Error> {
        event.check()?;
        let mut next = self.clone();
        next.add_checked(event, count, adjacency)?;
        *self = next;
        Ok(())
    }

    fn add_checked(
        &mut self,
        event: &Event,
        count: u64,
        adjacency: Adjacency,
    ) -> Result<(), Error> {
        if count == 0 {
            return Ok(());
        }
        let sensitivity = match adjacency {
            Adjacency::AddRemove | Adjacency::ZeroOut => 1.0,
            Adjacency::ReplaceOne => 2.0,
        };
        match event {
            Event::Gaussian { noise_multiplier } => {
                self.add_gaussian(sensitivity / noise_multiplier, count)
            }
            Event::ShuffledEpoch { noise_multiplier } => match adjacency {
                Adjacency::ReplaceOne | Adjacency::ZeroOut => {
                    self.add_gaussian(sensitivity / noise_multiplier, count)
                }
                Adjacency::AddRemove => Err(Error::Unsupported {
                    event: "a shuffled epoch under add-remove adjacency".into(),
                    advice: "adding a record moves every batch; account it under replace-one",
                }),
            },
            Event::SampledGaussian { sample_rate, noise_multiplier } => {
                if *sample_rate == 0.0 {
                    return Ok(());
                }
                if *sample_rate == 1.0 {
                    return self.add_gaussian(sensitivity / noise_multiplier, count);
                }
                let (rate, sigma) = (*sample_rate, *noise_multiplier);
                self.insert(
                    match adjacency {
                        Adjacency::AddRemove | Adjacency::ZeroOut => {
                            Release::Sampled { rate, sigma }
                        }
                        Adjacency::ReplaceOne => Release::SampledReplace { rate, sigma },
                    },
                    count,
                )
            }
            Event::Composed { events } => {
                events.iter().try_for_each(|event| self.add_checked(event, count, adjacency))
            }
            Event::Repeated { event, count: inner } => {
                let total = count.checked_mul(*inner).ok_or(Error::TooManySteps {
                    found: count as f64 * *inner as f64,
                    most: MOST_STEPS,
                })?;
                self.add_checked(event, total, adjacency)
            }
            Event::Geometric { .. } => Err(Error::Unsupported {
                event: "GeoDP's perturbation".into(),
                advice: "its sensitivity is assumed, not enforced; ask an Account for its claims",
            }),
            Event::Polar { event, miss } => match adjacency {
                Adjacency::ReplaceOne => Err(Error::Unsupported {
                    event: "the certified polar release under replace-one adjacency".into(),
                    advice: "its radius allows for one record more or less; sample by Poisson",
                }),
                _ => {
                    // Rounded up: the additions of a run lose at most this much together.
                    self.misses = (self.misses + miss * count as f64) * (1.0 + 4.0 * f64::EPSILON);
                    self.add_checked(event, count, adjacency)
                }
            },
            Event::NoPrivacy => {
                self.unprotected = true;
                Ok(())
            }
        }
    }

    fn add_gaussian(&mut self, mu: f64, count: u64) -> Result<(), Error> {
        self.count(count)?;
        let added = mu * mu * count as f64;
        match self.parts.first_mut() {
            Some((Release::Gaussian { mu }, _)) => *mu = (*mu * *mu + added).sqrt(),
            _ => self.parts.insert(0, (Release::Gaussian { mu: added.sqrt() }, 1)),
        }
        Ok(())
    }

    fn insert(&mut self, release: Release, count: u64) -> Result<(), Error> {
        self.count(count)?;
        match self.parts.binary_search_by_key(&release.key(), |(part, _)| part.key()) {
            Ok(at) => self.parts[at].1 += count,
            Err(at) => self.parts.insert(at, (release, count)),
        }
        Ok(())
    }

    fn count(&mut self, count: u64) -> Result<(), Error> {
        self.compositions = self.compositions.saturating_add(count);
        if self.compositions > MOST_STEPS {
            return Err(Error::TooManySteps { found: self.compositions as f64, most: MOST_STEPS });
        }
        Ok(())
    }

    /// The one Gaussian everything amounts to, if nothing is subsampled.
    pub(crate) fn only_gaussian(&self) -> Option<f64> {
        match self.parts.as_slice() {
            [(Release::Gaussian { mu }, _)] => Some(*mu),
            _ => None,
        }
    }
}
