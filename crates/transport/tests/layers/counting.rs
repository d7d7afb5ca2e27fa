//! An allocator that counts per thread, and so per test.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<i64> = const { Cell::new(0) };
}

/// Calls of this thread that allocated or moved memory.
pub(crate) fn allocations() -> u64 {
    ALLOCATIONS.get()
}

/// Bytes that this thread requested, less those it freed.
pub(crate) fn live_bytes() -> i64 {
    LIVE_BYTES.get()
}

struct Counting;

impl Counting {
    /// Cells without a destructor: using them allocates nothing.
    fn count(allocations: u64, bytes_before: usize, bytes_after: usize) {
        let signed = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
        ALLOCATIONS.set(ALLOCATIONS.get() + allocations);
        LIVE_BYTES.set(LIVE_BYTES.get() + signed(bytes_after) - signed(bytes_before));
    }
}

// SAFETY: every call is passed unchanged to the system's allocator, and its answer back; counting
// touches no memory that is handed out.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(1, 0, layout.size());
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::count(1, 0, layout.size());
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        Self::count(1, layout.size(), new_size);
        // SAFETY: guaranteed by the caller.
        unsafe { System.realloc(old, layout, new_size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        Self::count(0, layout.size(), 0);
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(old, layout) }
    }
}
