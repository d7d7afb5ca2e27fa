//! Resources of agents and the brokers they watch in a second.

use thrum_report::result::Resources;

/// Resources in a second that ended at a time of the coordinator's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    /// When it ended.
    pub(crate) at_ns: u64,
    /// By the broker.
    pub(crate) broker: Option<Resources>,
    /// By the generator of one agent.
    pub(crate) generator: Option<Resources>,
}

impl Used {
    /// Adds it to the known use of the second; the generators of all agents sum up to one.
    pub(crate) fn enter(&self, broker: &mut Option<Resources>, generator: &mut Option<Resources>) {
        *broker = self.broker.or(*broker);
        *generator = match (*generator, self.generator) {
            (Some(sum), Some(more)) => Some(together(&sum, &more)),
            (sum, more) => sum.or(more),
        };
    }
}

/// Resources of two processes.
fn together(left: &Resources, right: &Resources) -> Resources {
    Resources {
        cores_user: left.cores_user + right.cores_user,
        cores_system: left.cores_system + right.cores_system,
        rss_bytes: left.rss_bytes + right.rss_bytes,
        pss_bytes: left.pss_bytes + right.pss_bytes,
        threads: left.threads + right.threads,
        open_files: left.open_files + right.open_files,
        context_switches: left.context_switches + right.context_switches,
        network_in_bytes: left.network_in_bytes + right.network_in_bytes,
        network_out_bytes: left.network_out_bytes + right.network_out_bytes,
        disk_read_bytes: left.disk_read_bytes + right.disk_read_bytes,
        disk_write_bytes: left.disk_write_bytes + right.disk_write_bytes,
        machine_stolen: left.machine_stolen.max(right.machine_stolen),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources(rss_bytes: u64) -> Resources {
        Resources {
            rss_bytes,
            ..Resources::default()
        }
    }

    #[test]
    fn generators_are_added_up_and_the_broker_is_one() {
        let (mut broker, mut generator) = (None, None);
        let seen = [
            (None, Some(resources(3))),
            (Some(resources(7)), None),
            (None, Some(resources(4))),
        ];
        for (of_broker, of_generator) in seen {
            let used = Used {
                at_ns: 0,
                broker: of_broker,
                generator: of_generator,
            };
            used.enter(&mut broker, &mut generator);
        }
        assert_eq!(
            (broker, generator),
            (Some(resources(7)), Some(resources(7)))
        );
    }
}
