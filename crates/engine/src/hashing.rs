//! How the node hashes topics and identifiers.

/// Random for each table, so that nobody outside can choose what falls into one place.
#[cfg(not(any(test, feature = "testing")))]
pub(crate) type HashBuilder = hashbrown::DefaultHashBuilder;

/// Numbers of anchors that nobody outside can guess.
#[cfg(not(any(test, feature = "testing")))]
pub(crate) fn anchors() -> thrum_routing::Anchors {
    thrum_routing::Anchors::new()
}

#[cfg(any(test, feature = "testing"))]
pub(crate) use repeatable::{HashBuilder, anchors};

#[cfg(any(test, feature = "testing"))]
pub mod repeatable {
    //! Another hash for each table, as in a release; on a thread that asks for it, the same ones in
    //! each run of a test.

    use std::cell::Cell;
    use std::hash::{BuildHasher, DefaultHasher, Hasher};

    use hashbrown::DefaultHashBuilder;
    use thrum_routing::Anchors;

    /// The tests of this crate repeat without asking.
    const FIRST: Option<u64> = if cfg!(test) { Some(0) } else { None };

    std::thread_local! {
        /// Tables that were made since the hashes of this thread repeat; none while they do not.
        static MADE: Cell<Option<u64>> = const { Cell::new(FIRST) };
    }

    /// The hashes of one table.
    #[derive(Clone, Debug)]
    pub(crate) enum HashBuilder {
        Random(DefaultHashBuilder),
        Repeatable(u64),
    }

    /// A hash of one table.
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

    /// Two anchors that share a number cost a look-up more, and a turn does that much less.
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

    /// The tables that this thread makes from now on hash like those of its last run.
    pub fn start_over() {
        MADE.set(Some(0));
    }
}
