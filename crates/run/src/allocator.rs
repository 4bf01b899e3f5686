//! Memory blocks aligned to cache lines.
//!
//! The system's blocks begin 16 bytes into one. A register of 64 bytes that is loaded from there touches two lines, and
//! training then takes a fifth longer.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator, with every block of some size on cache lines.
pub struct OnCacheLines;

const LINE: usize = 64;

/// Blocks below this size hold no numbers to train with.
const SMALL: usize = 256;

fn on_lines(layout: Layout) -> Layout {
    if layout.size() < SMALL {
        return layout;
    }
    layout.align_to(LINE).unwrap_or(layout)
}

// SAFETY: all work is left to `System`. It is given the same layout for a block each time, since `on_lines` depends
// only on what the caller gives, and a stricter alignment is still the one that the caller asked for.
unsafe impl GlobalAlloc for OnCacheLines {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is that of `System`.
        unsafe { System.alloc(on_lines(layout)) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, on_lines(layout)) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(on_lines(layout)) }
    }
}
