//! Why a client may not send what it was asked to send.

use thrum_codec::EncodeError;

/// Why a message is not published; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// No accepted connection.
    #[error("not connected")]
    NotConnected,
    /// As many QoS 1 and 2 messages are unacknowledged as the server allows: try again after the
    /// next acknowledgement.
    #[error("window of unacknowledged messages is full")]
    WindowFull,
    /// Over the server's maximum packet size.
    #[error("message is larger than the server accepts")]
    TooLarge,
    /// Over the server's maximum quality of service.
    #[error("the server does not support this quality of service")]
    QoSNotSupported,
    /// The server keeps no retained messages.
    #[error("the server does not support retained messages")]
    RetainNotSupported,
    /// Empty without an alias, or has a wildcard.
    #[error("invalid topic name")]
    TopicInvalid,
    /// Over the server's topic alias maximum, or an empty topic with an alias that was not sent on
    /// this connection.
    #[error("topic alias is not allowed by the server or not set yet")]
    TopicAliasInvalid,
    /// A field does not fit the wire format.
    #[error(transparent)]
    Encode(EncodeError),
}

/// Why a SUBSCRIBE or UNSUBSCRIBE is not sent; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubscribeError {
    /// No accepted connection.
    #[error("not connected")]
    NotConnected,
    /// Neither SUBSCRIBE nor UNSUBSCRIBE can be empty.
    #[error("no topic filter")]
    NoFilter,
    /// No local is forbidden for shared subscriptions.
    #[error("a shared subscription cannot have the option no local")]
    SharedNoLocal,
    /// The server allows no wildcards.
    #[error("the server does not support wildcard subscriptions")]
    WildcardNotSupported,
    /// The server has no shared subscriptions.
    #[error("the server does not support shared subscriptions")]
    SharedNotSupported,
    /// The server takes no subscription identifiers.
    #[error("the server does not support subscription identifiers")]
    IdentifiersNotSupported,
    /// Every packet identifier is in use.
    #[error("no packet identifier is free")]
    NoPacketId,
    /// Over the server's maximum packet size.
    #[error("packet is larger than the server accepts")]
    TooLarge,
    /// A field does not fit the wire format.
    #[error(transparent)]
    Encode(EncodeError),
}
