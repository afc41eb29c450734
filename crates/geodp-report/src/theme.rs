//! Colours and text of every figure, fixed by role so that DP is the same blue everywhere.
//!
//! The hues are those of Okabe and Ito (blue, vermilion, bluish green, reddish purple), told apart under the common
//! colour-vision deficiencies; repeated series of one role differ in lightness, dash and marker as
//! well, so no figure depends on colour alone. A role's class sets `color` and shapes paint with
//! `currentColor`: plain CSS that editors without CSS variables draw too. Dark colours apply on
//! screens only, so paper is always light.

use std::fmt::Write;

/// What a series stands for; decides its colour and marker in every figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// DP-SGD.
    Dp,
    /// GeoDP-SGD.
    GeoDp,
    /// GeoDP with a theorem.
    CertifiedGeoDp,
    /// The same training without noise.
    NoNoise,
    /// A theoretical curve; dashed by default.
    Theory,
    /// Anything else; a second and third neutral series take a purple and an ochre.
    Neutral,
}

/// Shades of a role, then the dashes and opacities of their order.
pub(crate) const VARIANTS: usize = 3;

/// Light and dark colours by role, then variant.
const COLOURS: [(&str, [&str; VARIANTS], [&str; VARIANTS]); 6] = [
    ("dp", ["#0072b2", "#4697cf", "#00446b"], ["#4fb0ea", "#9ad3f7", "#2f8fca"]),
    ("geodp", ["#d55e00", "#e08a3c", "#8f3e00"], ["#ff8f47", "#ffc296", "#e0701f"]),
    ("plain", ["#008a65", "#3faf8c", "#00543d"], ["#2cc295", "#8adfc5", "#159a74"]),
    ("theory", ["#30343c", "#777d88", "#50565f"], ["#e5e7eb", "#9ca3af", "#c3c8d0"]),
    ("neutral", ["#68707c", "#8e5ba6", "#9a7200"], ["#a3abb8", "#c9a0dd", "#ddb74a"]),
    ("certified", ["#a83f85", "#cc79a7", "#6e2458"], ["#e795c8", "#f4c8df", "#c9669f"]),
];

impl Role {
    pub(crate) fn index(self) -> usize {
        match self {
            Role::Dp => 0,
            Role::GeoDp => 1,
            Role::NoNoise => 2,
            Role::Theory => 3,
            Role::Neutral => 4,
            Role::CertifiedGeoDp => 5,
        }
    }

    /// The class that colours the `variant`-th series of this role.
    pub(crate) fn class(self, variant: usize) -> String {
        format!("{}{}", COLOURS[self.index()].0, variant % VARIANTS)
    }
}

/// Gives each series of a figure its variant: how many of the same role came before it.
pub(crate) fn variants(roles: impl IntoIterator<Item = Role>) -> Vec<usize> {
    let mut seen = [0; COLOURS.len()];
    roles
        .into_iter()
        .map(|role| {
            let count = &mut seen[role.index()];
            *count += 1;
            *count - 1
        })
        .collect()
}

/// The fonts of figures and pages: what the reader's system has.
pub(crate) const FONTS: &str = "system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",\
     \"Noto Sans\",\"Liberation Sans\",Arial,sans-serif";

/// The style sheet of every figure, scoped to its class so that it can stand in any page once.
pub(crate) fn figure_css() -> String {
    let mut css = format!(
        ".geodp-figure{{font:13px {FONTS};font-variant-numeric:tabular-nums}}\n{SHAPES}{LIGHT}"
    );
    let colours = |css: &mut String, dark: bool| {
        for (name, light_shades, dark_shades) in &COLOURS {
            let shades = if dark { dark_shades } else { light_shades };
            for (variant, shade) in shades.iter().enumerate() {
                // Writing to a String cannot fail.
                let _ = writeln!(css, ".geodp-figure .{name}{variant}{{color:{shade}}}");
            }
        }
    };
    colours(&mut css, false);
    css.push_str("@media screen and (prefers-color-scheme:dark){\n");
    css.push_str(DARK);
    colours(&mut css, true);
    css.push_str("}\n");
    css
}

const SHAPES: &str = "\
.geodp-figure .title{font-size:15px;font-weight:600}
.geodp-figure .small{font-size:12px}
.geodp-figure .grid,.geodp-figure .axis,.geodp-figure .error{fill:none;stroke-width:1}
.geodp-figure .line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.geodp-figure .dash1{stroke-dasharray:8 4;stroke-linecap:butt}
.geodp-figure .dash2{stroke-dasharray:2.5 3.5;stroke-linecap:butt}
.geodp-figure .theory-dash{stroke-width:1.5;stroke-dasharray:5 4;stroke-linecap:butt}
.geodp-figure .band{fill:currentColor;fill-opacity:.17;stroke:none}
.geodp-figure .whisker{fill:none;stroke:currentColor;stroke-width:1.5}
.geodp-figure .marker{fill:currentColor;stroke-width:1}
.geodp-figure .dots{fill:none;stroke:currentColor;stroke-width:4.5;stroke-linecap:round;stroke-opacity:.55}
.geodp-figure .bar{fill:currentColor;fill-opacity:.8}
.geodp-figure .bar.over{fill-opacity:.5}
.geodp-figure .mark{stroke-width:1.25;stroke-dasharray:3 3}
.geodp-figure .halo{paint-order:stroke;stroke-width:4;stroke-linejoin:round;font-weight:600;font-size:12px}
";

const LIGHT: &str = "\
.geodp-figure .paper{fill:#fff}
.geodp-figure text{fill:#1f2430}
.geodp-figure .small{fill:#565d69}
.geodp-figure .grid{stroke:#e6e8ec}
.geodp-figure .axis{stroke:#7a818d}
.geodp-figure .error,.geodp-figure .mark{stroke:#1f2430}
.geodp-figure .halo,.geodp-figure .marker{stroke:#fff}
";

const DARK: &str = "\
.geodp-figure .paper{fill:#15181d}
.geodp-figure text{fill:#e3e6eb}
.geodp-figure .small{fill:#a8afbb}
.geodp-figure .grid{stroke:#2b3038}
.geodp-figure .axis{stroke:#747c89}
.geodp-figure .error,.geodp-figure .mark{stroke:#e3e6eb}
.geodp-figure .halo,.geodp-figure .marker{stroke:#15181d}
";
