//! One small chart, byte for byte, so that a change of looks is a change somebody saw.
//!
//! `golden/small.svg` was made by this test and looked at in a browser, light and dark. After a
//! change that is meant, make it anew and look again:
//! `GEODP_MAKE_GOLDEN=1 cargo test -p geodp-report --test all golden`.

use geodp_report::{Axis, Chart, Figure, Role, Series};

#[test]
fn a_small_chart_looks_as_before() {
    let chart = Chart::new("Loss by step", Axis::linear("step"), Axis::log("loss").unit("nats"))
        .series(
            Series::line("DP", Role::Dp, [(0.0, 2.3), (50.0, 0.9), (100.0, 0.4)])
                .band([(2.0, 2.6), (0.7, 1.2), (0.3, 0.5)])
                .markers(),
        )
        .series(Series::line("theory", Role::Theory, [(0.0, 2.3), (100.0, 0.38)]))
        .mark_y(0.5, "goal");
    let svg = chart.svg().to_string();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/small.svg");
    if std::env::var_os("GEODP_MAKE_GOLDEN").is_some() {
        std::fs::write(path, &svg).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(path).expect("the golden file is there");
    assert!(svg == golden, "the chart changed; see the top of tests/golden.rs");
}
