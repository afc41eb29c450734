//! Figures and report pages: data in; SVG, CSV and one self-contained HTML page out.
//!
//! Pure functions on the standard library alone: nothing is read, drawn at random or fetched, and
//! the same data gives the same bytes. No data can make it fail. The words "DP", "GeoDP", "no noise"
//! and "theory" have one colour each ([`Role`]) in every figure of the project.
//!
//! ```
//! use geodp_report::{Axis, Callout, Chart, Figure, Page, Role, Section, Series, Table, format};
//!
//! let sigma = [1e-3, 1e-2, 1e-1, 1.0];
//! let error = |scale: f64| sigma.map(|s| (s, scale * s * s));
//! let chart = Chart::new(
//!     "Direction error against noise",
//!     Axis::log("noise multiplier σ"),
//!     Axis::log("MSE of θ").unit("rad²"),
//! )
//! .series(Series::line("DP", Role::Dp, error(2.0)).markers())
//! .series(
//!     Series::line("GeoDP, β = 0.1", Role::GeoDp, error(0.5))
//!         .markers()
//!         .band(error(0.5).map(|(_, y)| (0.8 * y, 1.2 * y))),
//! )
//! .series(Series::line("theory", Role::Theory, error(0.5)))
//! .mark_x(0.1, "σ = 0.1");
//!
//! let svg: String = chart.svg().to_string(); // a file of its own
//! let csv: String = chart.csv();
//! let html: String = Page::new("Run 7")
//!     .subtitle("CNN on MNIST")
//!     .section(
//!         Section::new("Privacy")
//!             .headline([("ε, certified", format::epsilon(2.931)), ("δ", "10⁻⁵".into())])
//!             .figure(&chart, "GeoDP’s error is a quarter of DP’s; bands are 95 % intervals.")
//!             .table(Table::new(["method", "accuracy"]).row(["DP", "98.1 %"]))
//!             .callout(Callout::Private, "Per-record losses depend on the data."),
//!     )
//!     .to_html();
//! assert!(svg.starts_with("<svg") && csv.starts_with("series,") && html.contains("Figure 1."));
//! ```

mod chart;
pub mod csv;
mod escape;
pub mod format;
mod page;
mod svg;
mod theme;

pub use chart::{Axis, Bars, Chart, Estimate, Figure, Histogram, Panels, Series, Width};
pub use page::{Callout, Page, Section, Table, Text, Tone};
pub use svg::Svg;
pub use theme::Role;
