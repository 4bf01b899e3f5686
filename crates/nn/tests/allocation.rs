//! Nothing is allocated in a step.

mod common;

use common::{network, normals, stacks};
use selvedge_nn::{Update, loss, random::Key, simd::Level};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: hands every call to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

// One test only: another one running beside it would allocate.
#[test]
fn a_step_allocates_nothing() {
    for (shape, specs) in stacks() {
        let network = network(shape, &specs, Level::detect());
        let mut params = vec![0.0; network.params()];
        network.initialise(Key::new(1), &mut params);
        let input = normals(Key::new(2), shape.len());
        let mut tape = vec![0.0; network.tape()];
        let mut prepared = vec![0.0; network.prepared()];
        let mut scratch = vec![0.0; network.scratch()];
        let mut gradient = vec![0.0; network.params()];
        let mut d_output = vec![0.0; network.output().len()];
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        network.prepare(&params, &mut prepared);
        let logits = network.forward(&params, &input, &mut tape);
        loss::cross_entropy(network.level(), logits, 0, 1.0, &mut d_output);
        network.backward(
            &prepared,
            &input,
            &tape,
            &d_output,
            Update::Accumulate(&mut gradient),
            &mut scratch,
            None,
        );
        assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), before, "{specs:?}");
    }
}
