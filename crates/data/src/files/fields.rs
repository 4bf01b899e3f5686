//! The fields of one line of comma-separated values.

/// Walks over the fields of a line. A field may stand in double quotes and then hold commas; quotes
/// inside quotes occur in none of the sets, and are refused rather than guessed at.
pub(crate) struct Fields<'a> {
    rest: Option<&'a str>,
}

/// The fields of `line`; an empty line has one empty field.
pub(crate) fn fields(line: &str) -> Fields<'_> {
    Fields { rest: Some(line) }
}

impl<'a> Iterator for Fields<'a> {
    /// A field without its quotes; or, as an error, the field whose quotes make no sense.
    type Item = Result<&'a str, &'a str>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        if let Some(quoted) = rest.strip_prefix('"') {
            let Some((field, after)) = quoted.split_once('"') else {
                return Some(Err(rest));
            };
            if after.is_empty() {
                return Some(Ok(field));
            }
            let Some(next) = after.strip_prefix(',') else {
                return Some(Err(rest.split(',').next().unwrap_or(rest)));
            };
            self.rest = Some(next);
            return Some(Ok(field));
        }
        let Some(comma) = rest.bytes().position(|byte| byte == b',') else {
            return Some(Ok(rest));
        };
        self.rest = Some(&rest[comma + 1..]);
        Some(Ok(&rest[..comma]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(line: &str) -> Vec<Result<&str, &str>> {
        fields(line).collect()
    }

    #[test]
    fn plain_quoted_and_empty_fields() {
        assert_eq!(all("a,b"), [Ok("a"), Ok("b")]);
        assert_eq!(all("\"a,b\",c,\"\""), [Ok("a,b"), Ok("c"), Ok("")]);
        assert_eq!(all(""), [Ok("")]);
        assert_eq!(all(",x,"), [Ok(""), Ok("x"), Ok("")]);
    }

    #[test]
    fn stray_quotes_are_errors() {
        assert_eq!(all("1,\"2,3"), [Ok("1"), Err("\"2,3")]);
        assert_eq!(all("\"2\"x,3"), [Err("\"2\"x")]);
    }
}
