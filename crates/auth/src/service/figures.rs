//! The counts of the service, as figures of the node.

use std::sync::Arc;

use super::link::Link;
use crate::metrics::{BackendCounts, GatekeeperMetrics};

/// Figures of a backend that admits clients, below `authentication/backends/NAME/`.
const OF_LOGINS: [(&str, Figure); 7] = [
    ("allowed", |counts| counts.allowed),
    ("denied", |counts| counts.denied),
    ("ignored", |counts| counts.ignored),
    ("errors", |counts| counts.errors),
    ("timeouts", |counts| counts.timeouts),
    ("cache/hits", |counts| counts.cache_hits),
    ("cache/misses", |counts| counts.cache_misses),
];

/// Figures of a backend that decides about topics, below `authorization/backends/NAME/`.
const OF_DECISIONS: [(&str, Figure); 3] = [
    ("allowed", |counts| counts.permitted),
    ("denied", |counts| counts.refused),
    ("ignored", |counts| counts.undecided),
];

type Figure = fn(&BackendCounts) -> u64;

/// Reports the totals, and the counts of the backends in force.
pub(super) fn tell_all(
    totals: &GatekeeperMetrics,
    links: &[Arc<Link>],
    tell: &mut dyn FnMut(&str, u64),
) {
    tell("authentication/allowed", totals.admitted);
    tell("authentication/denied", totals.denied);
    tell("authentication/overloaded", totals.overloaded);
    tell("authentication/pending", totals.pending);
    for link in links {
        let (name, counts) = (level(&link.name), link.counts());
        let mut tell_some = |part: &str, figures: &[(&str, Figure)]| {
            for (topic, figure) in figures {
                tell(&format!("{part}/backends/{name}/{topic}"), figure(&counts));
            }
        };
        tell_some("authentication", &OF_LOGINS);
        if link.backend.is_authorizer() {
            tell_some("authorization", &OF_DECISIONS);
        }
    }
}

/// The name of a backend as one level of a topic.
fn level(name: &str) -> String {
    name.replace(['/', '+', '#', '\0'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::fake::{Fake, Says};

    fn told(links: &[Arc<Link>]) -> Vec<(String, u64)> {
        let mut told = Vec::new();
        tell_all(&GatekeeperMetrics::default(), links, &mut |topic, value| {
            told.push((topic.to_owned(), value));
        });
        told
    }

    #[test]
    fn a_name_is_one_level_of_a_topic() {
        let counters = Arc::default();
        let link = Link::new(Arc::new(Fake::new("a/+#", Says::Ignore)), counters);
        link.decided(true);
        let told = told(&[Arc::new(link)]);
        let topic = "authentication/backends/a___/allowed".to_owned();
        assert!(told.contains(&(topic, 1)), "{told:?}");
    }

    #[test]
    fn the_guide_lists_every_figure() {
        let guide = include_str!("../../../../docs/guide/sys-topics.md");
        let link = Link::new(Arc::new(Fake::new("NAME", Says::Ignore)), Arc::default());
        let told = told(&[Arc::new(link)]);
        let topics = told.into_iter().map(|(topic, _)| topic);
        let decisions =
            OF_DECISIONS.map(|(topic, _)| format!("authorization/backends/NAME/{topic}"));
        for topic in topics.chain(decisions) {
            assert!(
                guide.contains(&format!("`{topic}`")),
                "{topic} is not in the guide"
            );
        }
    }
}
