//! How the node hashes topics and identifiers.

/// Random for each table, so that nobody outside can choose what falls into one place.
#[cfg(not(test))]
pub(crate) type HashBuilder = hashbrown::DefaultHashBuilder;

/// The same in every run, so that a simulation can be repeated.
#[cfg(test)]
pub(crate) type HashBuilder = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;
