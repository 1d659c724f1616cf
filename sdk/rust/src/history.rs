use crate::{Json, Message};

/// One line of the agent's history in this task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub seq: i64,
    pub turn: i64,
    /// As 2026-03-01T09:30:00.000000+00:00.
    pub time: String,
    pub what: Kind,
}

/// What a history entry tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A message came in.
    In(Box<Message>),
    /// The agent called a tool.
    Call { id: String, name: String, args: Json },
    /// The host's answer to the call of the same id.
    Result { id: String, ok: bool, text: String },
    /// The agent left a note.
    Note(String),
}

impl Entry {
    pub(crate) fn read(v: &Json) -> Entry {
        let (call, result) = (v.get("call"), v.get("result"));
        let what = match v.get_str("kind").as_str() {
            "in" => Kind::In(Box::new(Message::read(&v.get("message")))),
            "call" => Kind::Call { id: call.get_str("id"), name: call.get_str("name"), args: call.get("args") },
            "result" => {
                Kind::Result { id: result.get_str("id"), ok: result.get("ok").as_bool(), text: result.get_str("text") }
            }
            _ => Kind::Note(v.get_str("note")),
        };
        Entry { seq: v.get("seq").as_i64(), turn: v.get("turn").as_i64(), time: v.get_str("time"), what }
    }

    pub(crate) fn encode(&self) -> Json {
        let (kind, value) = match &self.what {
            Kind::In(m) => ("in", ("message", m.encode())),
            Kind::Call { id, name, args } => {
                let call = [("id", Json::from(id)), ("name", Json::from(name)), ("args", args.clone())];
                ("call", ("call", Json::object(call)))
            }
            Kind::Result { id, ok, text } => {
                let result = [("id", Json::from(id)), ("ok", Json::from(*ok)), ("text", Json::from(text))];
                ("result", ("result", Json::object(result)))
            }
            Kind::Note(text) => ("note", ("note", Json::from(text))),
        };
        Json::object([
            ("seq", Json::from(self.seq)),
            ("turn", Json::from(self.turn)),
            ("time", Json::from(&self.time)),
            ("kind", Json::from(kind)),
            value,
        ])
    }
}
