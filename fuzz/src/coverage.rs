//! Which edges of the control flow an execution took, and how often.
//!
//! `fuzz/instrument` has LLVM put a counter of eight bits on every edge. Counts are told apart by their size only:
//! once, twice, three times, 4 to 7, 8 to 15, 16 to 31, 32 to 127, more.

use std::sync::Mutex;

/// First and end address of each stretch of counters.
static STRETCHES: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Called by every instrumented object before `main`.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, stop: *mut u8) {
    let stretch = (start.expose_provenance(), stop.expose_provenance());
    // The linker joins the counters of all objects, so that most tell the same stretch.
    if let Ok(mut stretches) = STRETCHES.lock()
        && stretch.0 < stretch.1
        && !stretches.contains(&stretch)
    {
        stretches.push(stretch);
    }
}

/// What is known of an execution.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Learned {
    /// Whether an edge was taken for the first time, or as often as never before.
    pub(crate) is_new: bool,
    /// How many were taken.
    pub(crate) edges: usize,
}

/// What was seen since the beginning.
pub(crate) struct Coverage {
    stretches: Vec<(usize, usize)>,
    /// The sizes of counts that each counter has had, a bit for each.
    seen: Vec<u8>,
}

impl Coverage {
    pub(crate) fn new() -> Self {
        let stretches = STRETCHES.lock().map(|s| s.clone()).unwrap_or_default();
        let counters = stretches.iter().map(|(start, stop)| stop - start).sum();
        Coverage {
            stretches,
            seen: vec![0; counters],
        }
    }

    /// Counters in the program: none if it was not built by `tools/fuzz`.
    pub(crate) fn counters(&self) -> usize {
        self.seen.len()
    }

    /// Edges that were ever taken.
    pub(crate) fn edges(&self) -> usize {
        self.seen.iter().filter(|sizes| **sizes != 0).count()
    }

    /// Right before an execution.
    pub(crate) fn reset(&self) {
        for stretch in &self.stretches {
            counts(*stretch).fill(0);
        }
    }

    /// Right after it.
    pub(crate) fn learn(&mut self) -> Learned {
        let mut learned = Learned::default();
        let mut seen = self.seen.as_mut_slice();
        for stretch in &self.stretches {
            let counts = counts(*stretch);
            let (here, rest) = seen.split_at_mut(counts.len());
            seen = rest;
            for (counts, seen) in counts.chunks(64).zip(here.chunks_mut(64)) {
                // Nearly all are zero.
                if counts.iter().fold(0, |any, count| any | count) == 0 {
                    continue;
                }
                for (count, seen) in counts.iter().zip(seen) {
                    let size = size_of_count(*count);
                    learned.is_new |= *seen & size != size;
                    learned.edges += usize::from(size != 0);
                    *seen |= size;
                }
            }
        }
        learned
    }
}

/// The counters of a stretch.
fn counts((start, stop): (usize, usize)) -> &'static mut [u8] {
    let first = std::ptr::with_exposed_provenance_mut(start);
    // SAFETY: LLVM puts the counters there and nothing else. They are bytes, live as long as the program, and are
    // written by instrumented code only, which runs on this thread and not while the slice is in use.
    unsafe { std::slice::from_raw_parts_mut(first, stop - start) }
}

/// The bit of a count's size.
fn size_of_count(count: u8) -> u8 {
    match count {
        0 => 0,
        1..=3 => 1 << (count - 1),
        4..=7 => 1 << 3,
        8..=15 => 1 << 4,
        16..=31 => 1 << 5,
        32..=127 => 1 << 6,
        128.. => 1 << 7,
    }
}
