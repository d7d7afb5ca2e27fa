//! The same scenario with another load.

use thrum_figures::{fraction, whole};
use thrum_load::scenario::{PublishSpec, Rate, Scenario, Shape};

/// The quantity that a search changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vary {
    /// Messages per second of every publisher.
    Rate,
    /// Clients of every group.
    Clients,
}

/// The load of a scenario in the unit of what is varied; 0 if it has none.
pub fn load_of(scenario: &Scenario, vary: Vary) -> f64 {
    match vary {
        Vary::Rate => scenario.offered_rate(),
        Vary::Clients => f64::from(scenario.clients()),
    }
}

/// The scenario with `factor` times its load.
///
/// Groups of equal size stay equal; none becomes empty.
pub fn scaled(scenario: &Scenario, vary: Vary, factor: f64) -> Scenario {
    let mut scenario = scenario.clone();
    for group in &mut scenario.groups {
        match (vary, &mut group.publish) {
            (Vary::Rate, Some(publish)) => speed_up(publish, factor),
            (Vary::Rate, None) => {}
            (Vary::Clients, _) => {
                let clients = whole(f64::from(group.clients) * factor);
                group.clients = u32::try_from(clients).unwrap_or(u32::MAX).max(1);
            }
        }
    }
    scenario
}

fn speed_up(publish: &mut PublishSpec, factor: f64) {
    publish.rate = faster(publish.rate, factor);
    match &mut publish.shape {
        Shape::Constant => {}
        Shape::Ramp { to } => *to = faster(*to, factor),
        Shape::Steps { rates } => rates
            .iter_mut()
            .for_each(|rate| *rate = faster(*rate, factor)),
    }
}

fn faster(rate: Rate, factor: f64) -> Rate {
    let period_ns = whole(fraction(rate.period_ns) / factor);
    Rate {
        period_ns: period_ns.clamp(1, Rate::PERIOD_NS_MAX),
    }
}

#[cfg(test)]
mod tests {
    use thrum_load::scenario::find;

    use super::*;

    #[test]
    fn a_rate_is_multiplied_for_every_publisher() {
        let scenario = find("p2p-1K").unwrap();
        let faster = scaled(&scenario, Vary::Rate, 2.5);
        assert!((load_of(&faster, Vary::Rate) - 2_500.0).abs() < 1e-6);
        assert_eq!(faster.clients(), scenario.clients());
    }

    #[test]
    fn shapes_keep_their_form() {
        let mut scenario = find("fanout-1-1K").unwrap();
        let steps = vec![Rate::per_second(1), Rate::per_second(4)];
        scenario.groups[1].publish.as_mut().unwrap().shape = Shape::Steps { rates: steps };
        let faster = scaled(&scenario, Vary::Rate, 2.0);
        let expected = vec![Rate::per_second(2), Rate::per_second(8)];
        let publish = faster.groups[1].publish.as_ref().unwrap();
        assert_eq!(publish.shape, Shape::Steps { rates: expected });
    }

    #[test]
    fn clients_are_multiplied_and_pairs_stay_pairs() {
        let scenario = find("p2p-1K").unwrap();
        let larger = scaled(&scenario, Vary::Clients, 1.2345);
        assert_eq!((larger.publishers(), larger.subscribers()), (1_235, 1_235));
        let smaller = scaled(&find("sharedsub-1K-5").unwrap(), Vary::Clients, 0.01);
        assert_eq!((smaller.publishers(), smaller.subscribers()), (10, 1));
    }
}
