//! One subscription of one session.

use thrum_codec::QoS;
use thrum_codec::packet::SubscriptionOptions;
use thrum_routing::Destination;

use crate::ids::Slot;

/// How a client wants what it subscribes to.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The options of the SUBSCRIBE.
    pub options: SubscriptionOptions,
    /// 0 is none.
    pub identifier: u32,
}

/// A session's subscription as it stands in the worker's index.
#[derive(Clone, Copy, Debug)]
pub struct Subscriber {
    /// The session.
    pub slot: Slot,
    /// Subscription identifier, 0 is none; it has 28 bits, and above them stands whether messages
    /// are checked.
    tag: u32,
    /// The options of the SUBSCRIBE.
    pub options: SubscriptionOptions,
}

/// Whether each message of a subscription is checked against the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// All of it is allowed.
    Never,
    /// What no rule decides is denied.
    OrDenied,
    /// What no rule decides is allowed.
    OrAllowed,
}

impl Check {
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

    /// Subscription identifier; 0 is none.
    #[inline]
    pub const fn identifier(&self) -> u32 {
        self.tag & Self::IDENTIFIER
    }

    /// Whether each message is checked.
    #[inline]
    pub const fn is_checked(&self) -> bool {
        self.tag & Self::CHECKED != 0
    }

    /// What no rule decides is allowed.
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

/// A subscription that a session has.
#[derive(Debug)]
pub struct Standing {
    /// With `$share/GROUP/` and the mount point.
    pub filter: Box<str>,
    /// The quality of service that was granted.
    pub qos: QoS,
}

impl Destination for Subscriber {
    type Key = Slot;

    fn key(&self) -> Slot {
        self.slot
    }
}
