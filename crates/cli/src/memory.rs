//! Running out of memory is an error like any other: said in a sentence, with exit code 2.

use selvedge_run::OnCacheLines;
use std::alloc::{GlobalAlloc, Layout};
use std::io::Write;

/// The run crate's allocator, which ends the process where the standard library would abort it.
pub(crate) struct OrEnd;

fn checked(block: *mut u8, layout: Layout) -> *mut u8 {
    if block.is_null() && layout.size() > 0 {
        out_of_memory(layout.size());
    }
    block
}

/// What is on the disk is whole at any moment, so that nothing is lost by it.
#[cold]
fn out_of_memory(bytes: usize) -> ! {
    let _ = writeln!(
        std::io::stderr(),
        "error: out of memory: {bytes} more bytes are needed; expected more memory, or less data, smaller layers, fewer groups or a lower participation (a run that had begun can be resumed)"
    );
    // Whatever the others hold, nobody waits for it.
    std::process::exit(2)
}

// SAFETY: all work is left to `OnCacheLines`, with what the caller gives.
unsafe impl GlobalAlloc for OrEnd {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        checked(unsafe { OnCacheLines.alloc(layout) }, layout)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { OnCacheLines.dealloc(block, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { OnCacheLines.alloc_zeroed(layout) }, layout)
    }
}
