//! An allocator that counts what the worker threads of the broker allocate, and nothing else in
//! this process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static LIVE_BYTES: AtomicI64 = AtomicI64::new(0);

/// How the broker names its workers.
const WORKER: &str = "worker-";

/// Calls by workers that gave or moved memory, since the process began.
pub(crate) fn allocations() -> u64 {
    ALLOCATIONS.load(Ordering::SeqCst)
}

/// Bytes that workers asked for and have not given back.
pub(crate) fn live_bytes() -> i64 {
    LIVE_BYTES.load(Ordering::SeqCst)
}

struct Counting;

impl Counting {
    /// Asking for the name allocates nothing: the standard library grants that to allocators.
    fn count(allocations: u64, bytes_before: usize, bytes_after: usize) {
        let current = std::thread::current();
        if !current.name().is_some_and(|name| name.starts_with(WORKER)) {
            return;
        }
        let signed = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
        ALLOCATIONS.fetch_add(allocations, Ordering::SeqCst);
        LIVE_BYTES.fetch_add(signed(bytes_after) - signed(bytes_before), Ordering::SeqCst);
    }
}

// SAFETY: every call is handed to the system's allocator as it came, and its answer back; counting
// touches no memory that is handed out.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(1, 0, layout.size());
        // SAFETY: as the caller vouches for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::count(1, 0, layout.size());
        // SAFETY: as the caller vouches for.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        Self::count(1, layout.size(), new_size);
        // SAFETY: as the caller vouches for.
        unsafe { System.realloc(old, layout, new_size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        Self::count(0, layout.size(), 0);
        // SAFETY: as the caller vouches for.
        unsafe { System.dealloc(old, layout) }
    }
}
