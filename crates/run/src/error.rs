//! Errors, as messages for people.

use std::error::Error as Cause;
use std::fmt::{self, Debug, Display, Formatter};

/// An error with its context and its causes: `{}` shows the context, `{:#}` the causes as well.
///
/// ```
/// let error = selvedge_run::Run::read("no/such/run".as_ref()).err().unwrap();
/// assert_eq!(error.to_string(), "no/such/run is not a run directory: there is no such folder");
/// ```
pub struct Error {
    text: Option<String>,
    cause: Option<Box<dyn Cause + Send + Sync>>,
}

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Error {
            text: Some(text.into()),
            cause: None,
        }
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (&self.text, &self.cause) {
            (Some(text), _) => f.write_str(text)?,
            (None, Some(cause)) => write!(f, "{cause}")?,
            (None, None) => {}
        }
        let mut cause = self.source().filter(|_| f.alternate());
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// What `main` prints of an error that it returns: everything.
impl Debug for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#}")
    }
}

impl Cause for Error {
    fn source(&self) -> Option<&(dyn Cause + 'static)> {
        let cause = self.cause.as_deref()?;
        match self.text {
            Some(_) => Some(cause),
            None => cause.source(),
        }
    }
}

macro_rules! from {
    ($($error:ty)*) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Error { text: None, cause: Some(error.into()) }
            }
        })*
    };
}

from! {
    std::io::Error
    serde_json::Error
    safetensors::SafeTensorError
    selvedge_core::experiment::ExperimentError
    selvedge_core::model::ArchitectureError
    selvedge_core::task::TaskError
    selvedge_data::DataError
    selvedge_nn::ShapeError
}

/// What something was about that may have gone wrong.
pub(crate) trait Context<T>: Sized {
    fn with_context(self, text: impl FnOnce() -> String) -> Result<T>;

    fn context(self, text: &str) -> Result<T> {
        self.with_context(|| text.into())
    }
}

impl<T, E: Into<Box<dyn Cause + Send + Sync>>> Context<T> for std::result::Result<T, E> {
    fn with_context(self, text: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|cause| Error {
            text: Some(text()),
            cause: Some(cause.into()),
        })
    }
}

impl<T> Context<T> for Option<T> {
    fn with_context(self, text: impl FnOnce() -> String) -> Result<T> {
        self.ok_or_else(|| Error::new(text()))
    }
}

/// Returns an error that says this.
macro_rules! bail {
    ($($text:tt)*) => {
        return Err($crate::Error::new(format!($($text)*)))
    };
}

pub(crate) use bail;
