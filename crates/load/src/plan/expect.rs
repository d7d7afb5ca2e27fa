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
        };
        for (index, group) in self.scenario.groups.iter().enumerate() {
            for number in 0..group.clients {
                expected.add_client(index, group, number)?;
            }
        }
        let Expected {
            expectations,
            shared,
            ..
        } = expected;
        (self.expectations, self.shared) = (expectations, shared);
        let direct = self.expectations.iter().filter_map(Expectation::each);
        for sources in direct.chain(&self.shared) {
            for publisher in (0..sources.len()).filter_map(|index| sources.publisher(index)) {
                self.publishers[as_index(publisher)].fan_out += 1;
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
}

impl Expected<'_> {
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
