//! Want of memory ends a command with a sentence, not with an abort.

use selvedge_run::OnCacheLines;
use std::alloc::{GlobalAlloc, Layout};
use std::io::Write;

/// The usual allocator, which says so when there is no memory left.
pub(crate) struct Memory;

/// Nothing here may take memory.
#[cold]
fn give_up(bytes: usize) -> ! {
    let _ = writeln!(
        std::io::stderr(),
        "error: out of memory: {bytes} more bytes cannot be had; expected more free memory, or smaller layers, fewer devices, a lower participation or fewer --threads. A run that has begun can be resumed"
    );
    std::process::exit(2)
}

fn or_give_up(block: *mut u8, layout: Layout) -> *mut u8 {
    if block.is_null() {
        give_up(layout.size());
    }
    block
}

// SAFETY: all work is left to `OnCacheLines`, with what the caller gives; a failure does not return.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        or_give_up(unsafe { OnCacheLines.alloc(layout) }, layout)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { OnCacheLines.dealloc(block, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        or_give_up(unsafe { OnCacheLines.alloc_zeroed(layout) }, layout)
    }
}
