use crate::{base64, Error, Json, Op, Turn};

/// One HTTP request. `Json::from(&request)` is the request of [`Op::HTTP_FETCH`], for
/// [`Turn::submit`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchRequest {
    /// GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS; empty is GET.
    pub method: String,
    /// Is absolute, http or https.
    pub url: String,
    pub headers: Vec<(String, String)>,
    /// Is what the JSON of a request holds, 2 MiB: about 1.5 MiB of bytes that are not
    /// text.
    pub body: Vec<u8>,
}

/// The answer to a [`FetchRequest`]; any status is one, also 404 and 500.
/// `FetchResponse::from(&answer)` reads it from the answer of [`Op::HTTP_FETCH`], for
/// [`Pending::json`](crate::Pending::json).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchResponse {
    pub status: i64,
    /// Have names in lower case.
    pub headers: Vec<(String, String)>,
    /// Is whole; one of more than 8 MiB, or what the operator's `[limits.http]` says, is
    /// LIMIT.
    pub body: Vec<u8>,
}

impl FetchRequest {
    /// A GET.
    pub fn get(url: &str) -> FetchRequest {
        FetchRequest { url: url.into(), ..Default::default() }
    }
}

impl FetchResponse {
    /// The value of a header by its name in lower case, empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value)
    }

    /// The body as text; what is no UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Turn<'_> {
    /// Makes an HTTP request and waits for its answer. After 60 s, or what the
    /// operator's `[limits.http]` says, it is DEADLINE. It goes where the operator's grants lead, as in
    /// `allow = { http = ["https://api.example.com"] }`, else it is DENIED. The host
    /// adds the secrets that are bound to the origin. UNAVAILABLE means that no answer
    /// came; the request may have arrived.
    pub fn fetch(&mut self, request: &FetchRequest) -> Result<FetchResponse, Error> {
        Ok(FetchResponse::from(&self.call(Op::HTTP_FETCH, Some(&Json::from(request)))?))
    }

    /// Reports whether the host adds a secret to this agent's requests, by the name it
    /// has in the operator's file. The agent never sees its value.
    pub fn secret_exists(&mut self, name: &str) -> Result<bool, Error> {
        let request = Json::object([("name", Json::from(name))]);
        Ok(self.call(Op::SECRET_EXISTS, Some(&request))?.get("exists").as_bool())
    }
}

impl From<&FetchRequest> for Json {
    fn from(r: &FetchRequest) -> Json {
        let method = if r.method.is_empty() { "GET" } else { r.method.as_str() };
        let mut members = vec![("method", Json::from(method)), ("url", Json::from(&r.url))];
        if !r.headers.is_empty() {
            members.push(("headers", pairs(&r.headers)));
        }
        if !r.body.is_empty() {
            members.push(body(&r.body));
        }
        Json::object(members)
    }
}

impl From<&Json> for FetchRequest {
    fn from(v: &Json) -> FetchRequest {
        FetchRequest { method: v.get_str("method"), url: v.get_str("url"), headers: headers(v), body: bytes(v) }
    }
}

impl From<&FetchResponse> for Json {
    fn from(r: &FetchResponse) -> Json {
        Json::object([("status", Json::from(r.status)), ("headers", pairs(&r.headers)), body(&r.body)])
    }
}

impl From<&Json> for FetchResponse {
    fn from(v: &Json) -> FetchResponse {
        FetchResponse { status: v.get("status").as_i64(), headers: headers(v), body: bytes(v) }
    }
}

fn pairs(list: &[(String, String)]) -> Json {
    Json::object(list.iter().map(|(name, value)| (name, Json::from(value))))
}

fn headers(v: &Json) -> Vec<(String, String)> {
    v.get("headers").members().into_iter().map(|(name, value)| (name, value.as_str())).collect()
}

/// Puts a body where the contract has it: text, or bytes as base64. A control
/// character would take six bytes.
fn body(bytes: &[u8]) -> (&'static str, Json) {
    let control = |c: char| c < ' ' && c != '\t' && c != '\n' && c != '\r';
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(control) => ("body", Json::from(text)),
        _ => ("body_base64", Json::from(base64::encode(bytes))),
    }
}

fn bytes(v: &Json) -> Vec<u8> {
    match v.get_str("body_base64") {
        coded if coded.is_empty() => v.get_str("body").into_bytes(),
        coded => base64::decode(&coded),
    }
}
