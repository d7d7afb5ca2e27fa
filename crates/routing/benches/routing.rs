//! Speed and memory of the index.

fn main() {}
