//! The only places that name the interfaces of the parts behind `thrum bench`: scenarios, engine,
//! results.

mod control;
mod engine;
mod live_view;
mod results;
mod scenarios;

pub(super) use engine::{Engine, Finished, interrupt_flag};
pub(super) use results::{Form, Forms, keep, reports, summary_of, summary_text, table_of};
pub(super) use scenarios::{Changes, file_of, listing, resolve, set_members, sets, shaped};
