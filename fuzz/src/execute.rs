//! One execution, and what counts as a failure: a panic, too much memory, too much time.

use crate::allocator;
use selvedge_data::fuzz::Target;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// An execution that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(2);

/// Memory that each byte of an input may take, besides what the target may take for any.
const MEMORY_PER_BYTE: usize = 64;

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Failures at the same place are taken for the same.
    pub(crate) place: String,
    /// What happened.
    pub(crate) what: String,
}

/// What an execution took.
pub(crate) struct Spent {
    /// Bytes that were held at a time.
    pub(crate) memory: usize,
    /// How long it ran.
    pub(crate) time: Duration,
}

thread_local! {
    static LAST_PANIC: RefCell<Option<Failure>> = const { RefCell::new(None) };
}

/// From here on panics are remembered and not printed.
pub(crate) fn remember_panics() {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map_or("an unknown place".into(), |l| {
            format!("{}:{}", l.file(), l.line())
        });
        let message = info.payload_as_str().unwrap_or("no message");
        let what = format!("panicked at {place}: {message}");
        LAST_PANIC.set(Some(Failure { place, what }));
    }));
}

/// Runs the target on one input.
pub(crate) fn execute(target: &Target, input: &[u8]) -> Result<Spent, Failure> {
    let limit = target.memory + MEMORY_PER_BYTE * input.len();
    let start = Instant::now();
    WATCHED_SINCE.store(now(), Ordering::Relaxed);
    allocator::begin(limit);
    // What a panicking parser leaves half done is gone with it.
    let result = panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let memory = allocator::end();
    WATCHED_SINCE.store(0, Ordering::Relaxed);
    let time = start.elapsed();
    let failure = |place: &str, what: String| Failure {
        place: place.into(),
        what,
    };
    if result.is_err() {
        let panicked = LAST_PANIC.take();
        return Err(panicked.unwrap_or_else(|| failure("a panic", "panicked".into())));
    }
    if memory > limit {
        let what = format!("held {memory} bytes of memory, where {limit} are allowed");
        return Err(failure("memory", what));
    }
    if time > PATIENCE {
        return Err(failure("time", format!("took {time:?}")));
    }
    Ok(Spent { memory, time })
}

/// Milliseconds at which the execution began, or 0 between executions.
static WATCHED_SINCE: AtomicU64 = AtomicU64::new(0);

/// Milliseconds since the first call, counted from 1.
fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_millis() as u64 + 1
}

/// Starts a thread that ends the process when an execution hangs.
pub(crate) fn watch() {
    now();
    thread::spawn(|| {
        loop {
            thread::sleep(PATIENCE / 8);
            let since = WATCHED_SINCE.load(Ordering::Relaxed);
            if since > 0 && now().saturating_sub(since) > PATIENCE.as_millis() as u64 {
                eprintln!("hangs: an execution does not come back");
                std::process::abort();
            }
        }
    });
}
