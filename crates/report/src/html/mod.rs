//! The report as one HTML file: no request leaves it, it needs no script, and it stays under a
//! size.

mod charts;
mod comparison;
mod disclosure;
mod embed;
mod page;
mod versus_page;
mod view;
mod words;

pub use comparison::{ComparisonRow, ComparisonTable};
pub use page::{PAGE_BYTES_MAX, PageError, PageOptions, TEMPLATE, page};
pub use versus_page::versus_page;

pub(crate) use charts::{Chart, charts};
pub(crate) use words::{Badge, Tile, badges, paragraph, subtitle, tiles};
