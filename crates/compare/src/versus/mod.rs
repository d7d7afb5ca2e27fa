//! The same scenarios against several brokers, one after the other, each freshly started.

mod launch;
mod order;
mod spec;
mod standing;
mod text;

pub use launch::{LaunchError, Running, kill_all};
pub use order::rounds;
pub(crate) use spec::located;
pub use spec::{BUILT_IN, Broker, BrokerFile, Installed, SpecError, StopSignal};
pub use standing::{Ended, Entry, Run, Standing, VersusReport, standings};
pub use text::table;
