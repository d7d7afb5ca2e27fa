//! What one client's packets and the passing of time mean.
#![no_std]
