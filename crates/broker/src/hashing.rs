//! How the node hashes topics and identifiers.

/// Random for each table, so that nobody outside can choose what falls into one place.
#[cfg(not(test))]
pub(crate) type HashBuilder = hashbrown::DefaultHashBuilder;

#[cfg(test)]
pub(crate) use repeatable::HashBuilder;

#[cfg(test)]
pub(crate) mod repeatable {
    //! Another hash for each table, as in a release, and the same ones in each run of a test.

    use std::cell::Cell;
    use std::hash::{BuildHasher, DefaultHasher, Hasher};

    std::thread_local! {
        static MADE: Cell<u64> = const { Cell::new(0) };
    }

    /// The hashes of one table.
    #[derive(Clone, Debug)]
    pub(crate) struct HashBuilder(u64);

    impl Default for HashBuilder {
        fn default() -> Self {
            Self(MADE.replace(MADE.get() + 1))
        }
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
