//! A sample page and a page of hard cases, as a browser shows them.

use crate::cases;
use crate::in_browser;
#[path = "../examples/sample.rs"]
mod sample;

#[test]
fn the_sample_page_fits_a_phone_and_a_desk() {
    in_browser::check("sample", &sample::page().to_html(), 8);
}

#[test]
fn hard_cases_fit_a_phone_and_a_desk() {
    in_browser::check("cases", &cases::page().to_html(), 8);
}
