//! Reasons why a client cannot send a packet.

use thrum_codec::EncodeError;

/// Reason why a message was not published; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The server has not accepted a connection.
    #[error("not connected")]
    NotConnected,
    /// The number of unacknowledged QoS 1 and 2 messages has reached the server's limit: try again
    /// after the next acknowledgement.
    #[error("window of unacknowledged messages is full")]
    WindowFull,
    /// The message exceeds the server's maximum packet size.
    #[error("message is larger than the server accepts")]
    TooLarge,
    /// The message exceeds the server's maximum quality of service.
    #[error("the server does not support this quality of service")]
    QoSNotSupported,
    /// The server does not support retained messages.
    #[error("the server does not support retained messages")]
    RetainNotSupported,
    /// The topic is empty without an alias, or has a wildcard.
    #[error("invalid topic name")]
    TopicInvalid,
    /// The alias exceeds the server's topic alias maximum, or the topic is empty and the alias was
    /// not set on this connection.
    #[error("topic alias is not allowed by the server or not set yet")]
    TopicAliasInvalid,
    /// A field exceeds the limits of the wire format.
    #[error(transparent)]
    Encode(EncodeError),
}

/// Reason why a SUBSCRIBE or UNSUBSCRIBE was not sent; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubscribeError {
    /// The server has not accepted a connection.
    #[error("not connected")]
    NotConnected,
    /// The list of filters is empty.
    #[error("no topic filter")]
    NoFilter,
    /// A shared subscription has the option no local.
    #[error("a shared subscription cannot have the option no local")]
    SharedNoLocal,
    /// The server does not support wildcard subscriptions.
    #[error("the server does not support wildcard subscriptions")]
    WildcardNotSupported,
    /// The server does not support shared subscriptions.
    #[error("the server does not support shared subscriptions")]
    SharedNotSupported,
    /// The server does not support subscription identifiers.
    #[error("the server does not support subscription identifiers")]
    IdentifiersNotSupported,
    /// Every packet identifier is in use.
    #[error("no packet identifier is free")]
    NoPacketId,
    /// The packet exceeds the server's maximum packet size.
    #[error("packet is larger than the server accepts")]
    TooLarge,
    /// A field exceeds the limits of the wire format.
    #[error(transparent)]
    Encode(EncodeError),
}
