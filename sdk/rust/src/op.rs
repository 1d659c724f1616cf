use std::fmt;

/// The number of one host operation. Which of them a host has built, and which
/// it grants to an agent, differs; the others answer [`UNSUPPORTED`] or
/// [`DENIED`].
///
/// [`UNSUPPORTED`]: crate::Code::UNSUPPORTED
/// [`DENIED`]: crate::Code::DENIED
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Op(pub i32);

macro_rules! ops {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        impl Op {
            $(#[allow(missing_docs)] pub const $name: Op = Op($number);)*
        }

        const NAMES: &[(i32, &str)] = &[$(($number, $text)),*];
    };
}

ops! {
    LAST_ERROR = 0, "last_error";
    LOG = 1, "log";
    CLOCK_NOW = 2, "clock.now";
    RANDOM = 3, "random";
    HISTORY = 4, "history";
    MAIL = 10, "mail";
    ACTION = 11, "action";
    EMIT = 12, "emit";
    KV_GET = 20, "kv.get";
    KV_PUT = 21, "kv.put";
    KV_DELETE = 22, "kv.delete";
    KV_LIST = 23, "kv.list";
    KV_CAS = 24, "kv.cas";
    HTTP_FETCH = 30, "http.fetch";
    LLM_CHAT = 40, "llm.chat";
    SECRET_EXISTS = 50, "secret.exists";
    TIMER_SET = 60, "timer.set";
    TIMER_CANCEL = 61, "timer.cancel";
    METRIC = 70, "metric";
    SPAN = 71, "span";
    BLOB_GET = 80, "blob.get";
    BLOB_PUT = 81, "blob.put";
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match NAMES.iter().find(|(number, _)| *number == self.0) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "op {}", self.0),
        }
    }
}
