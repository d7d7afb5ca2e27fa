//! Hash functions for topics and identifiers.

/// A hash function that is random for each table, so that clients cannot provoke collisions.
#[cfg(not(any(test, feature = "testing")))]
pub(crate) type HashBuilder = hashbrown::DefaultHashBuilder;

/// Creates anchors with random numbers, so that clients cannot provoke collisions.
#[cfg(not(any(test, feature = "testing")))]
pub(crate) fn anchors() -> thrum_routing::Anchors {
    thrum_routing::Anchors::new()
}

#[cfg(any(test, feature = "testing"))]
pub(crate) use repeatable::{HashBuilder, anchors};

#[cfg(any(test, feature = "testing"))]
pub mod repeatable {
    //! Each table has its own hash function, as in a release; after [`start_over`] a thread uses
    //! the same hash functions in each run of a test.

    use std::cell::Cell;
    use std::hash::{BuildHasher, DefaultHasher, Hasher};

    use hashbrown::DefaultHashBuilder;
    use thrum_routing::Anchors;

    /// The tests of this crate always use repeatable hash functions.
    const FIRST: Option<u64> = if cfg!(test) { Some(0) } else { None };

    std::thread_local! {
        /// Number of tables that this thread has created with repeatable hash functions; none while
        /// its hash functions are random.
        static MADE: Cell<Option<u64>> = const { Cell::new(FIRST) };
    }

    /// The hash function of one table.
    #[derive(Clone, Debug)]
    pub(crate) enum HashBuilder {
        Random(DefaultHashBuilder),
        Repeatable(u64),
    }

    /// The state of a hash of one table.
    pub(crate) enum TableHasher {
        Random(<DefaultHashBuilder as BuildHasher>::Hasher),
        Repeatable(DefaultHasher),
    }

    impl Default for HashBuilder {
        fn default() -> Self {
            next().map_or_else(
                || Self::Random(DefaultHashBuilder::default()),
                Self::Repeatable,
            )
        }
    }

    /// Creates anchors with repeatable numbers: a collision of anchors costs a look-up, which
    /// changes the work of a turn.
    pub(crate) fn anchors() -> Anchors {
        next().map_or_else(Anchors::new, Anchors::repeatable)
    }

    fn next() -> Option<u64> {
        MADE.replace(MADE.get().map(|made| made + 1))
    }

    impl BuildHasher for HashBuilder {
        type Hasher = TableHasher;

        fn build_hasher(&self) -> TableHasher {
            match self {
                Self::Random(random) => TableHasher::Random(random.build_hasher()),
                Self::Repeatable(number) => {
                    let mut hasher = DefaultHasher::new();
                    hasher.write_u64(*number);
                    TableHasher::Repeatable(hasher)
                }
            }
        }
    }

    impl Hasher for TableHasher {
        fn finish(&self) -> u64 {
            match self {
                Self::Random(hasher) => hasher.finish(),
                Self::Repeatable(hasher) => hasher.finish(),
            }
        }

        fn write(&mut self, bytes: &[u8]) {
            match self {
                Self::Random(hasher) => hasher.write(bytes),
                Self::Repeatable(hasher) => hasher.write(bytes),
            }
        }
    }

    /// Makes the tables that this thread creates from now on use the same hash functions as after
    /// the previous call.
    pub fn start_over() {
        MADE.set(Some(0));
    }
}
