//! All tests of this crate as one program, which links once: a new file of tests wants its line here.

mod analysis;
mod bad_input;
mod clip;
mod exact;
mod fast_route;
mod movement;
mod noise;
mod polar;
mod scales;
mod sphere;
