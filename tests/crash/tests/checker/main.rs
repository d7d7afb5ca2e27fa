//! The checker finds what a broker may do wrong, and nothing in what it may do.

mod delivery;
mod mutation;
mod session;
mod story;
mod will;
