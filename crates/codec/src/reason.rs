//! Reason codes of MQTT 5.0; the return codes of 3.x are converted to and from them.

/// The outcome of a request, or the reason for a refusal or the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[expect(
    missing_docs,
    reason = "the names are those of the specification's table 2-6"
)]
pub enum ReasonCode {
    /// Also: normal disconnection, granted `QoS` 0.
    Success = 0x00,
    GrantedQoS1 = 0x01,
    GrantedQoS2 = 0x02,
    DisconnectWithWill = 0x04,
    NoMatchingSubscribers = 0x10,
    NoSubscriptionExisted = 0x11,
    ContinueAuthentication = 0x18,
    ReAuthenticate = 0x19,
    UnspecifiedError = 0x80,
    MalformedPacket = 0x81,
    ProtocolError = 0x82,
    ImplementationSpecificError = 0x83,
    UnsupportedProtocolVersion = 0x84,
    ClientIdentifierNotValid = 0x85,
    BadUserNameOrPassword = 0x86,
    NotAuthorized = 0x87,
    ServerUnavailable = 0x88,
    ServerBusy = 0x89,
    Banned = 0x8A,
    ServerShuttingDown = 0x8B,
    BadAuthenticationMethod = 0x8C,
    KeepAliveTimeout = 0x8D,
    SessionTakenOver = 0x8E,
    TopicFilterInvalid = 0x8F,
    TopicNameInvalid = 0x90,
    PacketIdentifierInUse = 0x91,
    PacketIdentifierNotFound = 0x92,
    ReceiveMaximumExceeded = 0x93,
    TopicAliasInvalid = 0x94,
    PacketTooLarge = 0x95,
    MessageRateTooHigh = 0x96,
    QuotaExceeded = 0x97,
    AdministrativeAction = 0x98,
    PayloadFormatInvalid = 0x99,
    RetainNotSupported = 0x9A,
    QoSNotSupported = 0x9B,
    UseAnotherServer = 0x9C,
    ServerMoved = 0x9D,
    SharedSubscriptionsNotSupported = 0x9E,
    ConnectionRateExceeded = 0x9F,
    MaximumConnectTime = 0xA0,
    SubscriptionIdentifiersNotSupported = 0xA1,
    WildcardSubscriptionsNotSupported = 0xA2,
}

impl ReasonCode {
    /// Whether the code is 0x80 or above.
    pub const fn is_error(self) -> bool {
        self as u8 >= 0x80
    }

    /// The byte on the wire of 5.0.
    #[inline]
    pub const fn as_u8(self) -> u8 {
        self as u8
    }

    /// The reason code of a byte; `None` if the specification does not define it.
    #[inline]
    pub const fn from_u8(byte: u8) -> Option<Self> {
        Some(match byte {
            0x00 => Self::Success,
            0x01 => Self::GrantedQoS1,
            0x02 => Self::GrantedQoS2,
            0x04 => Self::DisconnectWithWill,
            0x10 => Self::NoMatchingSubscribers,
            0x11 => Self::NoSubscriptionExisted,
            0x18 => Self::ContinueAuthentication,
            0x19 => Self::ReAuthenticate,
            0x80 => Self::UnspecifiedError,
            0x81 => Self::MalformedPacket,
            0x82 => Self::ProtocolError,
            0x83 => Self::ImplementationSpecificError,
            0x84 => Self::UnsupportedProtocolVersion,
            0x85 => Self::ClientIdentifierNotValid,
            0x86 => Self::BadUserNameOrPassword,
            0x87 => Self::NotAuthorized,
            0x88 => Self::ServerUnavailable,
            0x89 => Self::ServerBusy,
            0x8A => Self::Banned,
            0x8B => Self::ServerShuttingDown,
            0x8C => Self::BadAuthenticationMethod,
            0x8D => Self::KeepAliveTimeout,
            0x8E => Self::SessionTakenOver,
            0x8F => Self::TopicFilterInvalid,
            0x90 => Self::TopicNameInvalid,
            0x91 => Self::PacketIdentifierInUse,
            0x92 => Self::PacketIdentifierNotFound,
            0x93 => Self::ReceiveMaximumExceeded,
            0x94 => Self::TopicAliasInvalid,
            0x95 => Self::PacketTooLarge,
            0x96 => Self::MessageRateTooHigh,
            0x97 => Self::QuotaExceeded,
            0x98 => Self::AdministrativeAction,
            0x99 => Self::PayloadFormatInvalid,
            0x9A => Self::RetainNotSupported,
            0x9B => Self::QoSNotSupported,
            0x9C => Self::UseAnotherServer,
            0x9D => Self::ServerMoved,
            0x9E => Self::SharedSubscriptionsNotSupported,
            0x9F => Self::ConnectionRateExceeded,
            0xA0 => Self::MaximumConnectTime,
            0xA1 => Self::SubscriptionIdentifiersNotSupported,
            0xA2 => Self::WildcardSubscriptionsNotSupported,
            _ => return None,
        })
    }
}

/// The packets that carry a reason code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is the packet of that name")]
pub enum Carrier {
    ConnAck,
    PubAck,
    PubRec,
    PubRel,
    PubComp,
    SubAck,
    UnsubAck,
    Disconnect,
    Auth,
}

impl ReasonCode {
    /// Whether the specification lists this code for the given 5.0 packet.
    #[inline]
    pub const fn may_be_in(self, carrier: Carrier) -> bool {
        match carrier {
            Carrier::PubAck | Carrier::PubRec => self.answers_publish(),
            Carrier::PubRel | Carrier::PubComp => {
                matches!(self, Self::Success | Self::PacketIdentifierNotFound)
            }
            Carrier::SubAck => self.answers_subscribe(),
            Carrier::UnsubAck => self.answers_unsubscribe(),
            Carrier::ConnAck => self.answers_connect(),
            Carrier::Disconnect => self.ends_connection(),
            Carrier::Auth => {
                matches!(
                    self,
                    Self::Success | Self::ContinueAuthentication | Self::ReAuthenticate
                )
            }
        }
    }

    /// The reason code of a 3.x CONNACK return code; `None` for a reserved one.
    pub const fn from_return_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Success),
            1 => Some(Self::UnsupportedProtocolVersion),
            2 => Some(Self::ClientIdentifierNotValid),
            3 => Some(Self::ServerUnavailable),
            4 => Some(Self::BadUserNameOrPassword),
            5 => Some(Self::NotAuthorized),
            _ => None,
        }
    }

    /// The closest CONNACK return code of 3.x; 0 only for a code that is not an error.
    pub const fn return_code(self) -> u8 {
        if !self.is_error() {
            0
        } else if matches!(self, Self::UnsupportedProtocolVersion) {
            1
        } else if matches!(self, Self::ClientIdentifierNotValid) {
            2
        } else if matches!(self, Self::BadUserNameOrPassword) {
            4
        } else if self.is_refusal_of_client() {
            5
        } else {
            // Server unavailable also covers every cause that 3.x cannot express.
            3
        }
    }

    /// Whether the code refuses the client permanently, not only at present.
    const fn is_refusal_of_client(self) -> bool {
        matches!(
            self,
            Self::NotAuthorized
                | Self::Banned
                | Self::BadAuthenticationMethod
                | Self::AdministrativeAction
                | Self::TopicNameInvalid
                | Self::TopicFilterInvalid
                | Self::QoSNotSupported
                | Self::RetainNotSupported
        )
    }

    const fn answers_publish(self) -> bool {
        matches!(
            self,
            Self::Success
                | Self::NoMatchingSubscribers
                | Self::UnspecifiedError
                | Self::ImplementationSpecificError
                | Self::NotAuthorized
                | Self::TopicNameInvalid
                | Self::PacketIdentifierInUse
                | Self::QuotaExceeded
                | Self::PayloadFormatInvalid
        )
    }

    const fn answers_subscribe(self) -> bool {
        matches!(
            self,
            Self::Success
                | Self::GrantedQoS1
                | Self::GrantedQoS2
                | Self::UnspecifiedError
                | Self::ImplementationSpecificError
                | Self::NotAuthorized
                | Self::TopicFilterInvalid
                | Self::PacketIdentifierInUse
                | Self::QuotaExceeded
                | Self::SharedSubscriptionsNotSupported
                | Self::SubscriptionIdentifiersNotSupported
                | Self::WildcardSubscriptionsNotSupported
        )
    }

    const fn answers_unsubscribe(self) -> bool {
        matches!(
            self,
            Self::Success
                | Self::NoSubscriptionExisted
                | Self::UnspecifiedError
                | Self::ImplementationSpecificError
                | Self::NotAuthorized
                | Self::TopicFilterInvalid
                | Self::PacketIdentifierInUse
        )
    }

    const fn answers_connect(self) -> bool {
        matches!(
            self,
            Self::Success
                | Self::UnspecifiedError
                | Self::MalformedPacket
                | Self::ProtocolError
                | Self::ImplementationSpecificError
                | Self::UnsupportedProtocolVersion
                | Self::ClientIdentifierNotValid
                | Self::BadUserNameOrPassword
                | Self::NotAuthorized
                | Self::ServerUnavailable
                | Self::ServerBusy
                | Self::Banned
                | Self::BadAuthenticationMethod
                | Self::TopicNameInvalid
                | Self::PacketTooLarge
                | Self::QuotaExceeded
                | Self::PayloadFormatInvalid
                | Self::RetainNotSupported
                | Self::QoSNotSupported
                | Self::UseAnotherServer
                | Self::ServerMoved
                | Self::ConnectionRateExceeded
        )
    }

    const fn ends_connection(self) -> bool {
        matches!(
            self,
            Self::Success
                | Self::DisconnectWithWill
                | Self::UnspecifiedError
                | Self::MalformedPacket
                | Self::ProtocolError
                | Self::ImplementationSpecificError
                | Self::NotAuthorized
                | Self::ServerBusy
                | Self::ServerShuttingDown
                // Table 2-6 lists this code for DISCONNECT, but the table in the DISCONNECT section
                // omits it.
                | Self::BadAuthenticationMethod
                | Self::KeepAliveTimeout
                | Self::SessionTakenOver
                | Self::TopicFilterInvalid
                | Self::TopicNameInvalid
                | Self::ReceiveMaximumExceeded
                | Self::TopicAliasInvalid
                | Self::PacketTooLarge
                | Self::MessageRateTooHigh
                | Self::QuotaExceeded
                | Self::AdministrativeAction
                | Self::PayloadFormatInvalid
                | Self::RetainNotSupported
                | Self::QoSNotSupported
                | Self::UseAnotherServer
                | Self::ServerMoved
                | Self::SharedSubscriptionsNotSupported
                | Self::ConnectionRateExceeded
                | Self::MaximumConnectTime
                | Self::SubscriptionIdentifiersNotSupported
                | Self::WildcardSubscriptionsNotSupported
        )
    }
}
