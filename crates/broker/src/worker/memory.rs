//! The reaction of a worker to a shortage of memory: it measures, and returns free memory.

use std::sync::Arc;

use thrum_engine::core::Core;
use thrum_engine::node::metrics::Counter;
use thrum_protection::MemoryLevel;

use super::trim::return_memory;
use crate::system;

/// Each second, on one worker: the measurements for the whole node.
pub(super) fn watch_memory(core: &mut Core) {
    core.read_memory();
    let memory = &core.node.memory;
    let level = core.memory.level;
    if level >= MemoryLevel::Full {
        core.row().add(Counter::LimitMemory, 1);
    }
    if level >= MemoryLevel::Low && memory.should_give_back(core.memory.limit()) {
        let node = Arc::clone(&core.node);
        let is_done_later = return_memory(move || {
            system::return_free_memory();
            node.memory.finish_giving_back();
        });
        if !is_done_later {
            memory.finish_giving_back();
        }
    }
}
