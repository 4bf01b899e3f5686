//! `cargo bench` is `selvedge bench`: `cargo bench -- --kernels`, `cargo bench -- size-esr`.

use std::process::{Command, exit};

fn main() {
    // Cargo adds an option of its own.
    let arguments = std::env::args().skip(1).filter(|word| word != "--bench");
    let status = Command::new(env!("CARGO_BIN_EXE_selvedge"))
        .arg("bench")
        .args(arguments)
        .status();
    exit(status.ok().and_then(|s| s.code()).unwrap_or(2))
}
