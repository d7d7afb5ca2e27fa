//! One subscription of one session.

use thrum_codec::packet::SubscriptionOptions;
use thrum_routing::Destination;

use crate::ids::Slot;

/// Options and identifier of a subscription.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The options of the SUBSCRIBE.
    pub options: SubscriptionOptions,
    /// The subscription identifier; 0 is none.
    pub identifier: u32,
}

/// A subscription in the index of its worker.
#[derive(Clone, Copy, Debug)]
pub struct Subscriber {
    /// The slot of the session.
    pub slot: Slot,
    /// The subscription identifier in the lower 28 bits, 0 for none, and flags of the check in the
    /// upper bits.
    tag: u32,
    /// The options of the SUBSCRIBE.
    pub options: SubscriptionOptions,
}

/// Whether each message of a subscription is checked against the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Messages are not checked, as all of them are allowed.
    Never,
    /// Each message is checked; a message that no rule decides is denied.
    OrDenied,
    /// Each message is checked; a message that no rule decides is allowed.
    OrAllowed,
}

impl Check {
    /// Creates a check of each message; `or_allowed` is the decision about messages without a rule.
    pub const fn each(or_allowed: bool) -> Self {
        if or_allowed {
            Self::OrAllowed
        } else {
            Self::OrDenied
        }
    }
}

impl Subscriber {
    const CHECKED: u32 = 1 << 31;
    const OR_ALLOWED: u32 = 1 << 30;
    const IDENTIFIER: u32 = (1 << 28) - 1;

    pub(super) const fn new(slot: Slot, terms: Terms) -> Self {
        Self {
            slot,
            tag: terms.identifier & Self::IDENTIFIER,
            options: terms.options,
        }
    }

    /// The subscription identifier; 0 is none.
    #[inline]
    pub const fn identifier(&self) -> u32 {
        self.tag & Self::IDENTIFIER
    }

    /// The options and the identifier of the subscription.
    pub(super) const fn terms(&self) -> Terms {
        Terms {
            options: self.options,
            identifier: self.identifier(),
        }
    }

    /// Whether each message is checked against the rules.
    #[inline]
    pub const fn is_checked(&self) -> bool {
        self.tag & Self::CHECKED != 0
    }

    /// Whether a message that no rule decides is allowed.
    pub const fn or_allowed(&self) -> bool {
        self.tag & Self::OR_ALLOWED != 0
    }

    pub(super) const fn with(self, check: Check) -> Self {
        let bits = match check {
            Check::Never => 0,
            Check::OrDenied => Self::CHECKED,
            Check::OrAllowed => Self::CHECKED | Self::OR_ALLOWED,
        };
        Self {
            tag: self.tag & Self::IDENTIFIER | bits,
            ..self
        }
    }
}

/// The filter and the terms of a subscription of a session.
#[derive(Debug)]
pub struct SubscriptionEntry {
    /// The filter with `$share/GROUP/` and the mount point.
    pub filter: Box<str>,
    /// The granted options and the identifier.
    pub terms: Terms,
}

impl Destination for Subscriber {
    type Key = Slot;

    fn key(&self) -> Slot {
        self.slot
    }
}
