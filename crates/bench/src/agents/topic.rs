//! The topics of a run, all below `thrum-bench/`.

/// Agents without a run listen here.
pub(super) const ANNOUNCEMENTS: &str = "thrum-bench/announcements";

/// The topics of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Topics {
    session: String,
}

impl Topics {
    pub(super) fn new(session: &str) -> Self {
        Self {
            session: session.to_owned(),
        }
    }

    /// From an agent to the coordinator; `+` for any.
    pub(super) fn coordinator(&self, agent: &str) -> String {
        format!("thrum-bench/{}/coordinator/{agent}", self.session)
    }

    /// From the coordinator to an agent.
    pub(super) fn agent(&self, agent: &str) -> String {
        format!("thrum-bench/{}/agent/{agent}", self.session)
    }

    /// From the coordinator to all agents.
    pub(super) fn all(&self) -> String {
        format!("thrum-bench/{}/all", self.session)
    }

    /// Requests for the coordinator's clock; `+` for any agent.
    pub(super) fn ask(&self, agent: &str) -> String {
        format!("thrum-bench/{}/ask/{agent}", self.session)
    }

    /// Answers about the coordinator's clock.
    pub(super) fn answer(&self, agent: &str) -> String {
        format!("thrum-bench/{}/answer/{agent}", self.session)
    }
}

/// The topic of the answer to a clock request; none for any other topic.
pub(super) fn answer_to(topic: &str) -> Option<String> {
    let (run, agent) = topic.split_once("/ask/")?;
    Some(format!("{run}/answer/{agent}"))
}

/// The last part of a topic: an agent's.
pub(super) fn agent_of(topic: &str) -> &str {
    topic.rsplit('/').next().unwrap_or_default()
}

/// Short text that no other run or agent has.
pub(super) fn unique() -> String {
    use std::hash::{BuildHasher, RandomState};
    format!("{:x}", RandomState::new().hash_one("agents"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_goes_to_the_agent_that_asked() {
        let topics = Topics::new("5f");
        assert_eq!(answer_to(&topics.ask("a1")), Some(topics.answer("a1")));
        assert_eq!(answer_to(&topics.coordinator("a1")), None);
        assert_eq!(agent_of(&topics.coordinator("a1")), "a1");
        assert_ne!(unique(), unique());
    }
}
