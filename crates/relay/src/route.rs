//! The hard-coded route: a number at the end of the topic, looked up in an array.

use thrum_codec::{QoS, TopicFilter, Version};
use thrum_figures::as_index;

/// Numbers that the table has room for: 0 to one less. A table with all rows takes 56 MiB; rows
/// above the highest number in use do not exist.
pub(super) const NUMBERS_MAX: u32 = 1 << 20;

/// The source of messages for a filter; found once, at the SUBSCRIBE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Topics that end with this number.
    Number(u32),
    /// All topics.
    All,
    /// Likewise, for one receiver in turn.
    SharedNumber(u32),
    /// Likewise, for one receiver in turn.
    SharedAll,
}

/// A receiver of the messages of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Number of the connection among all of the relay.
    pub(super) client: u32,
    /// Highest quality of service.
    pub(super) qos: QoS,
    pub(super) version: Version,
}

/// The table; each thread has its own.
#[derive(Debug, Default)]
pub(super) struct Routes {
    numbers: Vec<Row>,
    any: Row,
}

/// The receivers of a route.
#[derive(Debug, Default)]
struct Row {
    all: Vec<Target>,
    shared: Vec<Target>,
    /// Index of the next receiver.
    turn: usize,
}

impl Route {
    /// The route of a filter; none if its number is too high for the table.
    pub(super) fn of(filter: TopicFilter<'_>) -> Option<Self> {
        let number = if filter.has_wildcard() {
            None
        } else {
            trailing_number(filter.matched_part().as_bytes())
        };
        match (filter.shared().is_some(), number) {
            (_, Some(number)) if number >= NUMBERS_MAX => None,
            (true, Some(number)) => Some(Self::SharedNumber(number)),
            (true, None) => Some(Self::SharedAll),
            (false, Some(number)) => Some(Self::Number(number)),
            (false, None) => Some(Self::All),
        }
    }
}

impl Routes {
    /// Adds a receiver, or changes it if it is there.
    pub(super) fn add(&mut self, route: Route, target: Target) {
        let targets = self.targets(route);
        match targets
            .iter_mut()
            .find(|known| known.client == target.client)
        {
            Some(known) => *known = target,
            None => targets.push(target),
        }
    }

    /// Removes a receiver if it is there.
    pub(super) fn remove(&mut self, route: Route, client: u32) {
        let targets = self.targets(route);
        if let Some(at) = targets.iter().position(|target| target.client == client) {
            targets.remove(at);
        }
    }

    /// Calls with every receiver of a message whose topic ends with this number.
    #[inline]
    pub(super) fn visit(&mut self, number: Option<u32>, mut visit: impl FnMut(Target)) {
        let row = number.and_then(|number| self.numbers.get_mut(as_index(number)));
        if let Some(row) = row {
            row.visit(&mut visit);
        }
        self.any.visit(&mut visit);
    }

    fn targets(&mut self, route: Route) -> &mut Vec<Target> {
        match route {
            Route::All => &mut self.any.all,
            Route::SharedAll => &mut self.any.shared,
            Route::Number(number) => &mut self.row(number).all,
            Route::SharedNumber(number) => &mut self.row(number).shared,
        }
    }

    fn row(&mut self, number: u32) -> &mut Row {
        let at = as_index(number);
        if at >= self.numbers.len() {
            self.numbers.resize_with(at + 1, Row::default);
        }
        &mut self.numbers[at]
    }
}

impl Row {
    #[inline]
    fn visit(&mut self, visit: &mut impl FnMut(Target)) {
        for target in &self.all {
            visit(*target);
        }
        if self.shared.is_empty() {
            return;
        }
        self.turn = if self.turn + 1 < self.shared.len() {
            self.turn + 1
        } else {
            0
        };
        visit(self.shared[self.turn]);
    }
}

/// The decimal number at the end of a topic, as `17` in `test/17`; a number too high for any table
/// stays too high.
#[inline]
pub(super) fn trailing_number(topic: &[u8]) -> Option<u32> {
    let (mut number, mut unit) = (0_u32, 1_u32);
    let digits = topic
        .iter()
        .rev()
        .take_while(|letter| letter.is_ascii_digit());
    let mut has_digits = false;
    for letter in digits {
        let digit = u32::from(letter - b'0');
        number = number.saturating_add(digit.saturating_mul(unit));
        unit = unit.saturating_mul(10);
        has_digits = true;
    }
    has_digits.then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(filter: &str) -> Option<Route> {
        Route::of(TopicFilter::parse(filter).unwrap())
    }

    fn target(client: u32) -> Target {
        Target {
            client,
            qos: QoS::AtLeastOnce,
            version: Version::V5,
        }
    }

    fn receivers(routes: &mut Routes, topic: &str) -> Vec<u32> {
        let mut found = Vec::new();
        let number = trailing_number(topic.as_bytes());
        routes.visit(number, |target| found.push(target.client));
        found
    }

    #[test]
    fn the_number_is_the_end_of_the_topic() {
        let number = |topic: &str| trailing_number(topic.as_bytes());
        assert_eq!(number("test/17"), Some(17));
        assert_eq!(number("a/5/sensor007"), Some(7));
        assert_eq!(number("42"), Some(42));
        assert_eq!(number("test/17/"), None);
        assert_eq!(number(""), None);
        assert_eq!(number("t/00000000000000000003"), Some(3));
        assert_eq!(number("t/99999999999999999999"), Some(u32::MAX));
    }

    #[test]
    fn a_filter_leads_to_a_number_or_to_everything() {
        assert_eq!(route("test/17"), Some(Route::Number(17)));
        assert_eq!(route("test/#"), Some(Route::All));
        assert_eq!(route("+/17"), Some(Route::All));
        assert_eq!(route("test/x"), Some(Route::All));
        assert_eq!(route("$share/g9/test/#"), Some(Route::SharedAll));
        assert_eq!(route("$share/g/test/3"), Some(Route::SharedNumber(3)));
        assert_eq!(route("test/1048575"), Some(Route::Number(1_048_575)));
        assert_eq!(route("test/1048576"), None);
    }

    #[test]
    fn a_message_goes_to_its_number_and_to_those_of_everything() {
        let mut routes = Routes::default();
        routes.add(Route::Number(2), target(20));
        routes.add(Route::Number(2), target(21));
        routes.add(Route::Number(3), target(30));
        routes.add(Route::All, target(1));
        assert_eq!(receivers(&mut routes, "test/2"), [20, 21, 1]);
        assert_eq!(receivers(&mut routes, "other/3"), [30, 1]);
        assert_eq!(receivers(&mut routes, "test/9999999"), [1]);
        assert_eq!(receivers(&mut routes, "test"), [1]);
        routes.remove(Route::Number(2), 20);
        routes.remove(Route::All, 1);
        routes.remove(Route::All, 99);
        assert_eq!(receivers(&mut routes, "test/2"), [21]);
    }

    #[test]
    fn shared_receivers_take_turns() {
        let mut routes = Routes::default();
        for client in 0..3 {
            routes.add(Route::SharedAll, target(client));
        }
        routes.add(Route::SharedNumber(7), target(70));
        let mut taken = Vec::new();
        for _ in 0..6 {
            taken.extend(receivers(&mut routes, "t/1"));
        }
        assert_eq!(taken, [1, 2, 0, 1, 2, 0]);
        assert_eq!(receivers(&mut routes, "t/7"), [70, 1]);
        routes.remove(Route::SharedAll, 2);
        assert_eq!(receivers(&mut routes, "t/1"), [0]);
        assert_eq!(receivers(&mut routes, "t/1"), [1]);
    }

    #[test]
    fn a_filter_that_is_subscribed_to_again_has_the_new_quality_of_service_once() {
        let mut routes = Routes::default();
        routes.add(Route::Number(1), target(5));
        let again = Target {
            qos: QoS::ExactlyOnce,
            ..target(5)
        };
        routes.add(Route::Number(1), again);
        let mut found = Vec::new();
        routes.visit(Some(1), |target| found.push(target));
        assert_eq!(found, [again]);
    }
}
