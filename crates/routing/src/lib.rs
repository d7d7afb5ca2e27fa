//! Who wants this topic.
#![no_std]
