//! Charts as SVG: drawn here, styled by classes, so that one drawing serves light, dark, paper and
//! PNG.
//!
//! Lengths are tenths of a pixel, so that paths are whole numbers and short.

mod bars;
mod drawing;
mod frame;
mod heat;
mod line;
mod palette;
mod percentile;
mod sample;
mod scale;

pub use bars::{Bar, BarChart};
pub use drawing::{Drawing, Place, escape};
pub(crate) use drawing::{Size, clip};
pub use heat::{HeatColumn, HeatMap};
pub use line::{Limit, LineChart, Series, StageBand, TimeMark};
pub use palette::{Palette, STYLE};
pub use percentile::{PercentileChart, PercentileLine};
pub use sample::{POINTS_MAX, Point, sample};
pub use scale::{Scale, value_text};
