//! Integers, strings and variable byte integers on the wire.
