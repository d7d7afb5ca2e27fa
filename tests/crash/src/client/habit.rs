//! When a client does what.

use thrum_conformance::Version;

use super::{BROKEN_MAX, Client, Habit, Phase, Stage, Surroundings};
use crate::event::{ClientEvent, Disconnect};

/// Longest time between two fences, in milliseconds.
const FENCE_PAUSE_MAX: u64 = 400;
/// Longest time between two moves of a restless client, in milliseconds.
const MOVE_PAUSE_MAX: u64 = 300;

impl Client {
    /// Does what is due.
    pub fn act(&mut self, around: &mut Surroundings<'_>) {
        match self.stage {
            Stage::Away => self.perhaps_return(around),
            Stage::Opening | Stage::Leaving => {}
            Stage::Up => self.act_connected(around),
            Stage::Broken(since) if around.now > since + BROKEN_MAX => {
                self.note(around, ClientEvent::Dropped);
                self.stage = Stage::Away;
            }
            Stage::Broken(_) => {}
        }
    }

    fn perhaps_return(&mut self, around: &mut Surroundings<'_>) {
        let waits_for_will = around.journal.checker().has_waiting_will(self.index)
            && (around.phase == Phase::Settle || self.awaits_own_will());
        let is_time = around.now >= self.returns || around.phase == Phase::Settle;
        if is_time && !waits_for_will {
            let begins_anew = self.role.ends_sessions && around.random.permille(100);
            let clean = self.session.must_be_clean || begins_anew || !self.is_lasting();
            self.connect(clean, around);
        }
    }

    /// Half of the time such a client stays disconnected until its will was seen.
    fn awaits_own_will(&self) -> bool {
        matches!(self.role.habit, Habit::Mourned(_)) && self.returns.is_multiple_of(2)
    }

    fn act_connected(&mut self, around: &mut Surroundings<'_>) {
        self.answer_due(around);
        if around.now >= self.next_ask {
            self.ask_for_filters(around);
        }
        match around.phase {
            Phase::Load => self.act_under_load(around),
            Phase::Settle if !around.journal.checker().is_fenced(self.index) => self.fence(around),
            Phase::Settle => {}
        }
    }

    fn act_under_load(&mut self, around: &mut Surroundings<'_>) {
        if around.now >= self.next_publish
            && let Some(publishes) = &self.role.publishes
        {
            self.next_publish = around.now + around.random.below(publishes.pause_max);
            self.publish_one(around);
        }
        if around.now >= self.next_fence {
            self.next_fence = around.now + around.random.below(FENCE_PAUSE_MAX);
            self.fence(around);
        }
        if around.now >= self.next_move {
            let is_first = self.next_move == 0;
            self.next_move = around.now + around.random.below(MOVE_PAUSE_MAX);
            if !is_first {
                self.change_mind(around);
                self.make_move(around);
            }
        }
    }

    fn make_move(&mut self, around: &mut Surroundings<'_>) {
        if matches!(self.role.habit, Habit::Present) {
            return;
        }
        let ends_session = self.role.ends_sessions && around.random.permille(400);
        let is_new = self.role.version == Version::V5;
        match around.random.below(5) {
            0 => self.vanish(around),
            1 => {
                let with_will = is_new && self.role.will.is_some() && around.random.permille(500);
                let ends_session = is_new && ends_session;
                self.disconnect(
                    Disconnect {
                        with_will,
                        ends_session,
                    },
                    around,
                );
            }
            2 => {
                let clean = ends_session || !self.is_lasting();
                self.connect(clean, around);
            }
            _ => {}
        }
    }
}
