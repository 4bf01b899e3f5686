//! How Ctrl-C and SIGTERM end what runs.

use anyhow::{Context, Result};
use selvedge_data::unfinished;
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Set by the first Ctrl-C.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Set where it ends intervals, not the process.
static CAUGHT: AtomicBool = AtomicBool::new(false);

static LAST_WORDS: OnceLock<&str> = OnceLock::new();

/// Set by SIGTERM, where it is told apart.
static TERMINATED: AtomicBool = AtomicBool::new(false);

/// Set once that was said.
static SAID: AtomicBool = AtomicBool::new(false);

/// Signals that come together are one wish to stop (`timeout` sends two at once); a later one ends the process.
const ONE_WISH: Duration = Duration::from_secs(1);

/// From now on Ctrl-C ends the process without leaving a part of a file or folder, which may be about patients.
pub(crate) fn leave_nothing() -> Result<()> {
    let mut first: Option<Instant> = None;
    ctrlc::set_handler(move || {
        let first = *first.get_or_insert_with(Instant::now);
        let again = INTERRUPTED.swap(true, Ordering::SeqCst) && first.elapsed() > ONE_WISH;
        if again || !CAUGHT.load(Ordering::SeqCst) {
            if let Some(words) = LAST_WORDS.get() {
                crate::say(words);
            }
            unfinished::remove_all();
            std::process::exit(130);
        }
    })
    .context("cannot catch Ctrl-C")
}

/// From now on Ctrl-C ends intervals, not the process.
pub(crate) fn catch_interrupts() {
    CAUGHT.store(true, Ordering::SeqCst);
}

/// What is said when Ctrl-C ends the process.
pub(crate) fn say_when_interrupted(words: &'static str) {
    let _ = LAST_WORDS.set(words);
}

/// From now on it is known whether a service manager has asked, who takes any code but 0 for a failure. It ends what
/// runs as Ctrl-C does.
pub(crate) fn tell_termination_apart() {
    extern "C" fn terminated(_: libc::c_int) {
        TERMINATED.store(true, Ordering::SeqCst);
        // SAFETY: a signal handler may raise another signal.
        unsafe { libc::raise(libc::SIGINT) };
    }
    let handler = terminated as extern "C" fn(libc::c_int);
    // SAFETY: the handler only stores a flag and raises a signal, which handlers may do.
    unsafe { libc::signal(libc::SIGTERM, handler as libc::sighandler_t) };
}

/// Whether SIGTERM has come.
pub(crate) fn is_terminated() -> bool {
    TERMINATED.load(Ordering::SeqCst)
}

/// Whether somebody has pressed Ctrl-C.
pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Set once somebody has.
pub(crate) fn interrupted_flag() -> &'static AtomicBool {
    &INTERRUPTED
}

/// Whether a run goes on; that it does not is said.
pub(crate) fn goes_on(say: impl FnOnce(&str)) -> ControlFlow<()> {
    if !is_interrupted() {
        return ControlFlow::Continue(());
    }
    // One of several runs says it for all.
    if !SAID.swap(true, Ordering::SeqCst) {
        say("Ctrl-C: saving …");
    }
    ControlFlow::Break(())
}
