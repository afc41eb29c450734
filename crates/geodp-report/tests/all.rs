//! All tests of this crate as one program, which links once: a new file of tests wants its line here.

mod browser;
mod cases;
mod escaping;
mod figures;
mod golden;
mod in_browser;
