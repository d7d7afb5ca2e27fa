//! The expected deliveries of each subscriber.

use std::collections::HashMap;

use thrum_codec::TopicFilter;
use thrum_figures::as_index;

use super::routes::Routes;
use super::{Expectation, Plan, PlanError, Sources};
use crate::scenario::{Group, fill};

impl Plan {
    /// Computes the expected messages of every subscriber, and the expected deliveries of each
    /// message.
    pub(super) fn expect_deliveries(&mut self) -> Result<(), PlanError> {
        let mut expected = Expected {
            plan: self,
            routes: HashMap::new(),
            numbers: HashMap::new(),
            expectations: Vec::new(),
            shared: Vec::new(),
            measured: Vec::new(),
            measured_shared: Vec::new(),
        };
        for (index, group) in self.scenario.groups.iter().enumerate() {
            let subscribe = group.subscribe.as_ref();
            let responds = subscribe.is_some_and(|subscribe| subscribe.respond);
            for number in 0..group.clients {
                expected.add_client(index, group, number)?;
                expected.note_measured(!responds);
            }
        }
        let Expected {
            expectations,
            shared,
            measured,
            measured_shared,
            ..
        } = expected;
        (self.expectations, self.shared) = (expectations, shared);
        let direct = self.expectations.iter().zip(measured);
        let direct =
            direct.filter_map(|(expectation, measured)| Some((expectation.each()?, measured)));
        for (sources, is_measured) in direct.chain(self.shared.iter().zip(measured_shared)) {
            for publisher in (0..sources.len()).filter_map(|index| sources.publisher(index)) {
                let planned = &mut self.publishers[as_index(publisher)];
                planned.fan_out += 1;
                planned.measured_fan_out += u32::from(is_measured);
            }
        }
        Ok(())
    }
}

/// Expectations under construction.
struct Expected<'a> {
    plan: &'a Plan,
    /// By broker, and whether messages come from other brokers over a bridge.
    routes: HashMap<(usize, bool), Routes<'a>>,
    /// Numbers of the shared subscriptions.
    numbers: HashMap<(usize, String), u32>,
    expectations: Vec<Expectation>,
    shared: Vec<Sources>,
    /// Whether the latencies of each expectation count, and of each shared subscription.
    measured: Vec<bool>,
    measured_shared: Vec<bool>,
}

impl Expected<'_> {
    /// Whether the latencies count of what was added last.
    fn note_measured(&mut self, is_measured: bool) {
        self.measured.resize(self.expectations.len(), is_measured);
        self.measured_shared.resize(self.shared.len(), is_measured);
    }

    fn add_client(&mut self, index: usize, group: &Group, number: u32) -> Result<(), PlanError> {
        if group
            .publish
            .as_ref()
            .is_some_and(|publish| publish.response.is_some())
        {
            // Only the answers to its own requests.
            let start = self.plan.groups[index].first_publisher + number;
            self.expectations
                .push(Expectation::Each(Sources::Range { start, len: 1 }));
            return Ok(());
        }
        let Some(subscribe) = &group.subscribe else {
            return Ok(());
        };
        let filters = filters_of(
            group,
            number,
            self.plan.scenario.publishers(),
            &self.plan.run_tag,
        );
        let prefix = subscribe.strip_prefix.as_deref();
        let plan = self.plan;
        let routes = self
            .routes
            .entry((group.target, prefix.is_some()))
            .or_insert_with(|| Routes::new(plan, group.target, prefix.is_some()));
        let sources = routes.sources(&filters, prefix.unwrap_or_default());
        let sources = sources.ok_or_else(|| PlanError::BadFilter {
            group: group.name.clone(),
            filter: filters.join(" "),
        })?;
        let Some(filter) = filters
            .into_iter()
            .next()
            .filter(|filter| is_shared(filter))
        else {
            self.expectations.push(Expectation::Each(sources));
            return Ok(());
        };
        let next = u32::try_from(self.shared.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry((group.target, filter)).or_insert(next);
        if number == next {
            self.shared.push(sources);
        }
        self.expectations.push(Expectation::Shared(number));
        Ok(())
    }
}

/// The filters of a client; a requester also subscribes to the topic of its answers.
pub(super) fn filters_of(group: &Group, number: u32, publishers: u32, run: &str) -> Vec<String> {
    if let Some(response) = group
        .publish
        .as_ref()
        .and_then(|publish| publish.response.as_ref())
    {
        return vec![fill(response, number + 1, run)];
    }
    let Some(subscribe) = &group.subscribe else {
        return Vec::new();
    };
    let mut filters = Vec::with_capacity(subscribe.filters.len());
    for pattern in &subscribe.filters {
        let filter = fill(pattern, number + 1, run);
        if filter.contains("{p}") {
            let each = 1..=publishers;
            filters.extend(each.map(|publisher| filter.replace("{p}", &publisher.to_string())));
        } else {
            filters.push(filter);
        }
    }
    filters
}

fn is_shared(filter: &str) -> bool {
    TopicFilter::parse(filter).is_ok_and(|filter| filter.shared().is_some())
}
