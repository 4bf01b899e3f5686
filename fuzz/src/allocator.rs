//! Counts the memory that the execution on this thread holds, and ends the process where that is absurd.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting.
pub(crate) struct Counting;

#[derive(Clone, Copy)]
struct Book {
    /// Nothing is counted outside of executions.
    limit: Option<usize>,
    live: usize,
    peak: usize,
}

thread_local! {
    static BOOK: Cell<Book> = const { Cell::new(Book { limit: None, live: 0, peak: 0 }) };
}

/// Begins to count. More than `limit` bytes at a time make the execution a failure.
pub(crate) fn begin(limit: usize) {
    BOOK.set(Book {
        limit: Some(limit),
        live: 0,
        peak: 0,
    });
}

/// Ends counting; gives the most bytes that were held at a time.
pub(crate) fn end() -> usize {
    let book = BOOK.get();
    BOOK.set(Book {
        limit: None,
        ..book
    });
    book.peak
}

/// `taken` bytes more and `given` bytes less.
fn count(taken: usize, given: usize) {
    // A thread that is ending has no book any more.
    let _ = BOOK.try_with(|cell| {
        let mut book = cell.get();
        let Some(limit) = book.limit else {
            return;
        };
        book.live = book.live.saturating_add(taken).saturating_sub(given);
        book.peak = book.peak.max(book.live);
        // What is only large fails when the execution is over; what would fill the machine must not be given at all.
        let absurd = taken > limit || book.live > limit.saturating_mul(4);
        if absurd {
            book.limit = None;
        }
        cell.set(book);
        if absurd {
            let live = book.live;
            eprintln!("out of bounds: {taken} bytes are asked for and {live} held, where {limit} are allowed");
            std::process::abort();
        }
    });
}

// SAFETY: all work is left to `System`, which is given what the caller gives.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }
}
