//! All tests of this crate as one program, which links once: a new file of tests wants its line here.

mod golden;
mod matrices;
mod versions;
