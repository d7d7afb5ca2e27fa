//! The figures of the broker as Prometheus and `OpenMetrics` read them.
//!
//! ```text
//!   Figures of the broker -> families (catalogue, parts, stages) -> text | OpenMetrics | protobuf
//! ```
//!
//! No label has a value that clients can choose, so that the number of series is known from the
//! configuration: workers, listeners, sinks, backends, reasons, and filters that an operator chose.

mod accept;
mod catalogue;
mod exports;
pub(crate) mod family;
mod interface;
pub(crate) mod native;
mod parts;
#[cfg(test)]
mod promql;
mod protobuf;
mod stages;
#[cfg(test)]
mod tests;
mod text;
mod topics;

use thrum_broker::Figures;

use crate::counts::InterfaceFigures;
pub use accept::Format;
use family::Family;

/// All metrics of a broker and its management interface, with the number of alarms that are raised
/// by name, in a format that [`Format::from_accept`] has chosen.
pub fn exposition(
    figures: &Figures,
    interface: Option<&InterfaceFigures>,
    alarms: &[(&'static str, u64)],
    format: Format,
) -> Vec<u8> {
    let mut families = families(figures, interface);
    families.push(parts::of_alarms(alarms));
    match format {
        Format::Text => text::render(&families, text::Dialect::Prometheus).into_bytes(),
        Format::OpenMetrics => text::render(&families, text::Dialect::OpenMetrics).into_bytes(),
        Format::Protobuf => protobuf::render(&families),
    }
}

/// All families that have samples, in the order of the guide.
pub(crate) fn families(figures: &Figures, interface: Option<&InterfaceFigures>) -> Vec<Family> {
    let mut families = parts::of_process(figures);
    families.extend(parts::of_node(figures));
    families.extend(stages::families(figures.stages.as_ref()));
    families.extend(catalogue::families(&figures.counters));
    families.extend(parts::of_workers(figures));
    families.extend(parts::of_listeners(figures));
    families.extend(parts::of_sinks(figures));
    families.extend(topics::families(&figures.topic_metrics));
    families.extend(parts::of_backends(&figures.backends));
    families.extend(exports::families(&figures.exports));
    families.extend(figures.storage.iter().flat_map(parts::of_storage));
    families.extend(interface.into_iter().flat_map(interface::families));
    families.retain(|family| !family.samples.is_empty());
    families
}
