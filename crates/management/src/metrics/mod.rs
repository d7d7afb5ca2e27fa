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

use std::sync::Arc;

use thrum_broker::{Figures, Queries};

use crate::alarms::Alarms;
use crate::counts::InterfaceFigures;
use crate::program::Program;
use crate::security::Security;
pub use accept::Format;
use family::Family;

/// What has metrics: a broker, and the management interface around it.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) queries: Queries,
    pub(crate) alarms: Arc<Alarms>,
    pub(crate) security: Security,
    /// The program around the broker, if there is one.
    pub(crate) program: Option<Arc<dyn Program>>,
}

impl Measured {
    /// All metrics of this moment, for whoever reads or gets them.
    pub(crate) fn families(&self) -> Vec<Family> {
        let mut interface = self.security.figures();
        let program = self.program.as_ref();
        interface.benchmarks = program.and_then(|program| program.benchmarks().activity());
        let alarms = self.alarms.counts();
        families(&self.queries.figures(), Some(&interface), &alarms)
    }

    /// The same in a format that [`Format::from_accept`] has chosen.
    pub(crate) fn exposition(&self, format: Format) -> Vec<u8> {
        render(&self.families(), format)
    }
}

/// The metrics of figures, with the number of alarms that are raised by name, in a format.
pub fn exposition(
    figures: &Figures,
    interface: Option<&InterfaceFigures>,
    alarms: &[(&'static str, u64)],
    format: Format,
) -> Vec<u8> {
    render(&families(figures, interface, alarms), format)
}

fn render(families: &[Family], format: Format) -> Vec<u8> {
    match format {
        Format::Text => text::render(families, text::Dialect::Prometheus).into_bytes(),
        Format::OpenMetrics => text::render(families, text::Dialect::OpenMetrics).into_bytes(),
        Format::Protobuf => protobuf::render(families),
    }
}

/// All families that have samples, in the order of the guide.
fn families(
    figures: &Figures,
    interface: Option<&InterfaceFigures>,
    alarms: &[(&'static str, u64)],
) -> Vec<Family> {
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
    families.push(parts::of_alarms(alarms));
    families.retain(|family| !family.samples.is_empty());
    families
}
