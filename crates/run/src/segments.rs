//! `segments.jsonl`: a line for each choice of P, Q and η, by rising t.

use selvedge_core::adaptive::Change;

/// The choice of a line that follows one of iteration `before`.
///
/// # Errors
/// A message, if the line is damaged.
pub fn parse(line: &[u8], before: Option<u64>) -> Result<Change, String> {
    let change: Change = serde_json::from_slice(line).map_err(|e| e.to_string())?;
    let rises = before.is_none_or(|before| change.t > before);
    match change.p > 0 && change.q > 0 && rises {
        true => Ok(change),
        false => Err("P, Q or t is invalid".into()),
    }
}
