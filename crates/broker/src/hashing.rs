//! How the node hashes topics and identifiers.

/// Random for each table, so that nobody outside can choose what falls into one place.
#[cfg(not(test))]
pub(crate) type HashBuilder = hashbrown::DefaultHashBuilder;

/// Numbers of anchors that nobody outside can guess.
#[cfg(not(test))]
pub(crate) fn anchors() -> thrum_routing::Anchors {
    thrum_routing::Anchors::new()
}

#[cfg(test)]
pub(crate) use repeatable::{HashBuilder, anchors};

#[cfg(test)]
pub(crate) mod repeatable {
    //! Another hash for each table, as in a release, and the same ones in each run of a test.

    use std::cell::Cell;
    use std::hash::{BuildHasher, DefaultHasher, Hasher};

    use thrum_routing::Anchors;

    std::thread_local! {
        static MADE: Cell<u64> = const { Cell::new(0) };
    }

    /// The hashes of one table.
    #[derive(Clone, Debug)]
    pub(crate) struct HashBuilder(u64);

    impl Default for HashBuilder {
        fn default() -> Self {
            Self(next())
        }
    }

    /// Two anchors that share a number cost a look-up more, and a turn does that much less.
    pub(crate) fn anchors() -> Anchors {
        Anchors::repeatable(next())
    }

    fn next() -> u64 {
        MADE.replace(MADE.get() + 1)
    }

    impl BuildHasher for HashBuilder {
        type Hasher = DefaultHasher;

        fn build_hasher(&self) -> DefaultHasher {
            let mut hasher = DefaultHasher::new();
            hasher.write_u64(self.0);
            hasher
        }
    }

    /// The tables that this thread makes from now on hash like those of its last run.
    pub(crate) fn start_over() {
        MADE.set(0);
    }
}
