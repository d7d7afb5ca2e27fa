//! The checker finds what a broker may do wrong, and nothing in what it may do.

mod delivery;
mod fault;
mod history;
mod mutation;
mod session;
mod will;
