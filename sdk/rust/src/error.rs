use std::fmt;

use crate::json::Object;
use crate::{Code, Json};

/// A call the host refused or could not do, or why an agent gives up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub code: Code,
    /// The op that failed, for instance `mail`.
    pub op: String,
    /// A short word for programs, for instance `comm_targets`.
    pub reason: String,
    /// How long to wait before a retry makes sense, 0 if that is not known.
    pub retry_after_ms: i64,
    pub message: String,
}

impl Error {
    /// An error for an agent to return: code and message go to the host.
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error { code, op: String::new(), reason: String::new(), retry_after_ms: 0, message: message.into() }
    }

    /// Decodes what a host said of a failed op.
    pub(crate) fn of(op: impl fmt::Display, (code, body): (Code, Vec<u8>)) -> Error {
        let mut e = Error::from_host(code, &body);
        if e.op.is_empty() {
            e.op = op.to_string();
        }
        e
    }

    /// Decodes the body of a failed op.
    pub(crate) fn from_host(code: Code, body: &[u8]) -> Error {
        let body = Json::parse_bytes(body).unwrap_or_default();
        let mut message = body.get_str("message");
        if message.is_empty() {
            message = "the host gave no message".into();
        }
        Error {
            code,
            op: body.get_str("op"),
            reason: body.get_str("reason"),
            retry_after_ms: body.get("retry_after_ms").as_i64(),
            message,
        }
    }

    /// The form in which it goes to the host.
    pub(crate) fn encode(&self) -> Json {
        let mut o = Object::new();
        o.text("code", &self.code.to_string()).some("op", Json::from(&self.op)).some("reason", Json::from(&self.reason));
        o.some("retry_after_ms", Json::from(self.retry_after_ms)).text("message", &self.message).json()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Error {}

impl From<&str> for Error {
    fn from(message: &str) -> Error {
        Error::new(Code::INTERNAL, message)
    }
}

impl From<String> for Error {
    fn from(message: String) -> Error {
        Error::new(Code::INTERNAL, message)
    }
}
