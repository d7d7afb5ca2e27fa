//! Lists inside packets, iterated and compared alike whether they are wire bytes or a sender's
//! slice.
//!
//! Wire bytes were checked when they were decoded. The iterators read them again and end at
//! anything that they cannot read, so they neither fail nor panic.

use core::slice;

use crate::packet::{
    QoS, ReasonCodes, RetainHandling, SubscriptionOptions, SubscriptionRequest,
    SubscriptionRequests, TopicFilters, Version,
};
use crate::properties::{SubscriptionIdentifiers, UserProperties, id};
use crate::reason::ReasonCode;
use crate::topic::TopicFilter;
use crate::wire::Reader;

/// Gives a list its equality, its length and its loops, all based on `iter`.
macro_rules! list {
    ($list:ident, $iter:ident, $item:ty) => {
        impl<'a> $list<'a> {
            /// Number of items; wire bytes are read to count them.
            pub fn len(&self) -> usize {
                self.iter().count()
            }

            /// Whether the list has no items.
            pub fn is_empty(&self) -> bool {
                self.iter().next().is_none()
            }
        }

        impl<'a> IntoIterator for &$list<'a> {
            type Item = $item;
            type IntoIter = $iter<'a>;

            fn into_iter(self) -> $iter<'a> {
                self.iter()
            }
        }

        impl<'a> IntoIterator for $list<'a> {
            type Item = $item;
            type IntoIter = $iter<'a>;

            fn into_iter(self) -> $iter<'a> {
                self.iter()
            }
        }

        impl<'b> PartialEq<$list<'b>> for $list<'_> {
            fn eq(&self, other: &$list<'b>) -> bool {
                self.iter().eq(other.iter())
            }
        }

        impl Eq for $list<'_> {}
    };
}

list!(UserProperties, UserPropertiesIter, (&'a str, &'a str));
list!(SubscriptionIdentifiers, SubscriptionIdentifiersIter, u32);
list!(
    SubscriptionRequests,
    SubscriptionRequestsIter,
    SubscriptionRequest<'a>
);
list!(TopicFilters, TopicFiltersIter, TopicFilter<'a>);
list!(ReasonCodes, ReasonCodesIter, ReasonCode);

/// Iterator over [`UserProperties`]: names and values.
#[derive(Clone, Debug)]
pub struct UserPropertiesIter<'a>(Source<'a, (&'a str, &'a str)>);

/// Iterator over [`SubscriptionIdentifiers`].
#[derive(Clone, Debug)]
pub struct SubscriptionIdentifiersIter<'a>(Source<'a, u32>);

/// Iterator over [`SubscriptionRequests`].
#[derive(Clone, Debug)]
pub struct SubscriptionRequestsIter<'a> {
    source: Source<'a, SubscriptionRequest<'a>>,
    version: Version,
}

/// Iterator over [`TopicFilters`].
#[derive(Clone, Debug)]
pub struct TopicFiltersIter<'a>(Source<'a, TopicFilter<'a>>);

/// Iterator over [`ReasonCodes`].
#[derive(Clone, Debug)]
pub struct ReasonCodesIter<'a>(Source<'a, ReasonCode>);

#[derive(Clone, Debug)]
enum Source<'a, T> {
    Wire(Reader<'a>),
    Listed(slice::Iter<'a, T>),
}

impl<'a> UserProperties<'a> {
    /// Names and values in the order they were sent.
    pub fn iter(&self) -> UserPropertiesIter<'a> {
        UserPropertiesIter(match *self {
            Self::Wire(block) => Source::Wire(Reader::new(block)),
            Self::Listed(list) => Source::Listed(list.iter()),
        })
    }
}

impl<'a> SubscriptionIdentifiers<'a> {
    /// The identifiers in the order they were sent.
    pub fn iter(&self) -> SubscriptionIdentifiersIter<'a> {
        SubscriptionIdentifiersIter(match *self {
            Self::Wire(block) => Source::Wire(Reader::new(block)),
            Self::Listed(list) => Source::Listed(list.iter()),
        })
    }
}

impl<'a> SubscriptionRequests<'a> {
    /// The requests in the order they were sent.
    pub fn iter(&self) -> SubscriptionRequestsIter<'a> {
        match *self {
            Self::Wire { bytes, version } => SubscriptionRequestsIter {
                source: Source::Wire(Reader::new(bytes)),
                version,
            },
            Self::Listed(list) => SubscriptionRequestsIter {
                source: Source::Listed(list.iter()),
                version: Version::V5,
            },
        }
    }
}

impl<'a> TopicFilters<'a> {
    /// The filters in the order they were sent.
    pub fn iter(&self) -> TopicFiltersIter<'a> {
        TopicFiltersIter(match *self {
            Self::Wire(bytes) => Source::Wire(Reader::new(bytes)),
            Self::Listed(list) => Source::Listed(list.iter()),
        })
    }
}

impl<'a> ReasonCodes<'a> {
    /// The codes in the order of the filters they answer.
    pub fn iter(&self) -> ReasonCodesIter<'a> {
        ReasonCodesIter(match *self {
            Self::Wire(bytes) => Source::Wire(Reader::new(bytes)),
            Self::Listed(list) => Source::Listed(list.iter()),
        })
    }
}

impl<'a> Iterator for UserPropertiesIter<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Source::Wire(reader) => {
                seek(reader, id::USER_PROPERTY)?;
                reader.pair().ok()
            }
            Source::Listed(list) => list.next().copied(),
        }
    }
}

impl Iterator for SubscriptionIdentifiersIter<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        match &mut self.0 {
            Source::Wire(reader) => {
                seek(reader, id::SUBSCRIPTION_IDENTIFIER)?;
                reader.variable().ok()
            }
            Source::Listed(list) => list.next().copied(),
        }
    }
}

impl<'a> Iterator for SubscriptionRequestsIter<'a> {
    type Item = SubscriptionRequest<'a>;

    fn next(&mut self) -> Option<SubscriptionRequest<'a>> {
        match &mut self.source {
            Source::Wire(reader) => {
                let filter = TopicFilter::from_checked(reader.string().ok()?);
                let options = SubscriptionOptions::from_bits(reader.u8().ok()?, self.version)?;
                Some(SubscriptionRequest { filter, options })
            }
            Source::Listed(list) => list.next().copied(),
        }
    }
}

impl<'a> Iterator for TopicFiltersIter<'a> {
    type Item = TopicFilter<'a>;

    fn next(&mut self) -> Option<TopicFilter<'a>> {
        match &mut self.0 {
            Source::Wire(reader) => reader.string().ok().map(TopicFilter::from_checked),
            Source::Listed(list) => list.next().copied(),
        }
    }
}

impl Iterator for ReasonCodesIter<'_> {
    type Item = ReasonCode;

    fn next(&mut self) -> Option<ReasonCode> {
        match &mut self.0 {
            Source::Wire(reader) => reader.u8().ok().and_then(ReasonCode::from_u8),
            Source::Listed(list) => list.next().copied(),
        }
    }
}

impl SubscriptionOptions {
    /// The options in a checked options byte; 3.x has only the quality of service.
    #[inline]
    pub(crate) const fn from_bits(bits: u8, version: Version) -> Option<Self> {
        let Some(qos) = QoS::from_u8(bits & 0b11) else {
            return None;
        };
        match version {
            Version::V31 | Version::V311 => Some(Self {
                qos,
                no_local: false,
                retain_as_published: false,
                retain_handling: RetainHandling::Send,
            }),
            Version::V5 => match RetainHandling::from_u8(bits >> 4 & 0b11) {
                Some(retain_handling) => Some(Self {
                    qos,
                    no_local: bits & 0b100 != 0,
                    retain_as_published: bits & 0b1000 != 0,
                    retain_handling,
                }),
                None => None,
            },
        }
    }
}

/// Moves past the next property with this identifier; `None` if there is none.
fn seek(reader: &mut Reader<'_>, wanted: u8) -> Option<()> {
    loop {
        let found = reader.u8().ok()?;
        if found == wanted {
            return Some(());
        }
        id::skip(reader, found)?;
    }
}
