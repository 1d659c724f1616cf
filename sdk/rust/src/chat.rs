use crate::json::Object;
use crate::turn::answer_of;
use crate::{Code, Error, Json, Op, Pending, Tool, Turn};

/// One question to a model. `Json::from(&request)` is the request of [`Op::LLM_CHAT`],
/// for [`Turn::submit`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatRequest {
    /// By its name in the operator's `[models]`.
    pub model: String,
    /// The conversation so far.
    pub messages: Vec<ChatMessage>,
    /// What the model may call.
    pub tools: Vec<Tool>,
    /// `auto` when empty, `none`, `required`, or the name of a tool.
    pub tool_choice: String,
    /// A JSON Schema that the text must follow, null for none.
    pub schema: Json,
    /// Bounds the answer; 0 takes the model's bound.
    pub max_tokens: i64,
    /// From 0 to 2; None leaves it to the model.
    pub temperature: Option<f64>,
}

/// One message of a conversation with a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatMessage {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    pub content: String,
    /// Of an assistant's message.
    pub tool_calls: Vec<ChatCall>,
    /// Of a tool's message: the call that it answers.
    pub tool_call_id: String,
    /// Of a tool's message: the call has failed.
    pub error: bool,
    /// Of an assistant's message: what its answer gave to be handed back.
    pub carry: Json,
}

/// A tool call that a model wants made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatCall {
    pub id: String,
    pub name: String,
    /// As the model wrote them: they may be no JSON.
    pub arguments: String,
}

/// A model's answer: text, tool calls, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatResponse {
    pub text: String,
    /// What the model has thought aloud.
    pub reasoning: String,
    pub tool_calls: Vec<ChatCall>,
    /// `stop`, `tool_calls`, `length` or `filtered`.
    pub finish: String,
    pub usage: ChatUsage,
    /// What goes back with the answer, null for nothing.
    pub carry: Json,
}

/// What an answer has cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatUsage {
    pub input_tokens: i64,
    pub cached_tokens: i64,
    pub output_tokens: i64,
    pub reasoning_tokens: i64,
    /// Millionths of a dollar, 0 without prices.
    pub micro_usd: i64,
}

/// A part of an answer as it comes, of the text or of the reasoning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatPiece {
    pub delta: String,
    pub reasoning: String,
}

/// An answer as it comes: an iterator over its pieces, and then [`answer`]. Dropping it
/// calls the question off.
///
/// [`answer`]: ChatStream::answer
pub struct ChatStream<'h> {
    op: Pending<'h>,
    read: Vec<u8>,
    whole: ChatResponse,
    over: bool,
}

impl<'h> Turn<'h> {
    /// Asks a model and waits for the whole answer. The model must be granted, as in
    /// `allow = { llm = ["default"] }`, else it is DENIED. LIMIT says that a budget is
    /// used up or the question too long, UNAVAILABLE that the model may answer later.
    pub fn chat(&mut self, request: &ChatRequest) -> Result<ChatResponse, Error> {
        Ok(ChatResponse::from(&self.call(Op::LLM_CHAT, Some(&Json::from(request)))?))
    }

    /// Asks a model and does not wait. If the host refuses, reading tells.
    pub fn chat_stream(&mut self, request: &ChatRequest) -> ChatStream<'h> {
        let op = self.submit(Op::LLM_CHAT, Some(&Json::from(request)));
        ChatStream { op, read: Vec::new(), whole: ChatResponse::default(), over: false }
    }
}

impl<'h> ChatStream<'h> {
    /// The op, for [`Turn::wait_any`].
    pub fn pending(&self) -> &Pending<'h> {
        &self.op
    }

    /// Reads what is left, and gives all of the answer.
    pub fn answer(mut self) -> Result<ChatResponse, Error> {
        while let Some(piece) = self.next() {
            piece?;
        }
        Ok(self.whole)
    }

    /// The next line, of which the last may have no end.
    fn line(&mut self) -> Result<Json, Error> {
        let mut piece = [0; 1024];
        let mut from = 0;
        loop {
            if let Some(end) = self.read[from..].iter().position(|b| *b == b'\n') {
                let rest = self.read.split_off(from + end + 1);
                let line = std::mem::replace(&mut self.read, rest);
                return answer_of(Op::LLM_CHAT, &line);
            }
            from = self.read.len();
            match self.op.read_some(&mut piece)? {
                0 if from == 0 => return Err(Error::new(Code::INTERNAL, "llm.chat: the answer breaks off")),
                0 => return answer_of(Op::LLM_CHAT, &std::mem::take(&mut self.read)),
                n => self.read.extend_from_slice(&piece[..n]),
            }
        }
    }
}

/// Where the op fails, the last item is the error.
impl Iterator for ChatStream<'_> {
    type Item = Result<ChatPiece, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let line = match self.line() {
            Ok(line) => line,
            Err(e) => {
                self.over = true;
                return Some(Err(e));
            }
        };
        let end = line.get("end");
        if end.is_object() {
            let (text, reasoning) = (std::mem::take(&mut self.whole.text), std::mem::take(&mut self.whole.reasoning));
            self.whole = ChatResponse { text, reasoning, ..ChatResponse::from(&end) };
            self.over = true;
            self.op.close();
            return None;
        }
        let piece = ChatPiece { delta: line.get_str("delta"), reasoning: line.get_str("reasoning") };
        self.whole.text += &piece.delta;
        self.whole.reasoning += &piece.reasoning;
        Some(Ok(piece))
    }
}

impl ChatMessage {
    /// What somebody says: `system`, `user` or `assistant`.
    pub fn new(role: &str, content: &str) -> ChatMessage {
        ChatMessage { role: role.into(), content: content.into(), ..Default::default() }
    }

    /// What a tool call gave, or why it failed.
    pub fn result(id: &str, outcome: Result<&str, &str>) -> ChatMessage {
        let (content, error) = outcome.map_or_else(|e| (e, true), |text| (text, false));
        ChatMessage { tool_call_id: id.into(), error, ..ChatMessage::new("tool", content) }
    }
}

/// The message that repeats an answer, before what its tool calls gave.
impl From<&ChatResponse> for ChatMessage {
    fn from(r: &ChatResponse) -> ChatMessage {
        ChatMessage { tool_calls: r.tool_calls.clone(), carry: r.carry.clone(), ..ChatMessage::new("assistant", &r.text) }
    }
}

impl From<&ChatCall> for Json {
    fn from(c: &ChatCall) -> Json {
        Object::new().text("id", &c.id).text("name", &c.name).text("arguments", &c.arguments).json()
    }
}

impl From<&ChatMessage> for Json {
    fn from(m: &ChatMessage) -> Json {
        let mut o = Object::new();
        o.text("role", &m.role).text("content", &m.content);
        o.some("tool_calls", Json::array(m.tool_calls.iter().map(Json::from)));
        o.some("tool_call_id", Json::from(&m.tool_call_id)).some("error", Json::from(m.error)).given("carry", &m.carry).json()
    }
}

impl From<&ChatRequest> for Json {
    fn from(r: &ChatRequest) -> Json {
        let mut o = Object::new();
        o.text("model", &r.model).set("messages", &Json::array(r.messages.iter().map(Json::from)));
        o.some("tools", Json::array(r.tools.iter().map(Json::from)));
        o.some("tool_choice", Json::from(&r.tool_choice)).given("response_schema", &r.schema);
        o.some("max_tokens", Json::from(r.max_tokens));
        if let Some(t) = r.temperature {
            o.set("temperature", &Json::decimal(t));
        }
        o.json()
    }
}

fn calls(v: &Json) -> Vec<ChatCall> {
    let call = |c: &Json| ChatCall { id: c.get_str("id"), name: c.get_str("name"), arguments: c.get_str("arguments") };
    v.get("tool_calls").items().iter().map(call).collect()
}

impl From<&Json> for ChatMessage {
    fn from(v: &Json) -> ChatMessage {
        ChatMessage {
            role: v.get_str("role"),
            content: v.get_str("content"),
            tool_calls: calls(v),
            tool_call_id: v.get_str("tool_call_id"),
            error: v.get("error").as_bool(),
            carry: v.get("carry"),
        }
    }
}

impl From<&Json> for ChatRequest {
    fn from(v: &Json) -> ChatRequest {
        ChatRequest {
            model: v.get_str("model"),
            messages: v.get("messages").items().iter().map(ChatMessage::from).collect(),
            tools: v.get("tools").items().iter().map(Tool::from).collect(),
            tool_choice: v.get_str("tool_choice"),
            schema: v.get("response_schema"),
            max_tokens: v.get("max_tokens").as_i64(),
            temperature: Some(v.get("temperature")).filter(|t| !t.is_null()).map(|t| t.as_f64()),
        }
    }
}

impl From<&ChatUsage> for Json {
    fn from(u: &ChatUsage) -> Json {
        let mut o = Object::new();
        o.int("input_tokens", u.input_tokens).some("cached_tokens", Json::from(u.cached_tokens));
        o.int("output_tokens", u.output_tokens).some("reasoning_tokens", Json::from(u.reasoning_tokens));
        o.some("micro_usd", Json::from(u.micro_usd)).json()
    }
}

/// The answer of [`Op::LLM_CHAT`], for tests.
impl From<&ChatResponse> for Json {
    fn from(r: &ChatResponse) -> Json {
        let mut o = Object::new();
        o.text("text", &r.text).some("reasoning", Json::from(&r.reasoning));
        o.set("tool_calls", &Json::array(r.tool_calls.iter().map(Json::from))).text("finish", &r.finish);
        o.set("usage", &Json::from(&r.usage)).given("carry", &r.carry).json()
    }
}

impl From<&Json> for ChatResponse {
    fn from(v: &Json) -> ChatResponse {
        let usage = v.get("usage");
        ChatResponse {
            text: v.get_str("text"),
            reasoning: v.get_str("reasoning"),
            tool_calls: calls(v),
            finish: v.get_str("finish"),
            usage: ChatUsage {
                input_tokens: usage.get("input_tokens").as_i64(),
                cached_tokens: usage.get("cached_tokens").as_i64(),
                output_tokens: usage.get("output_tokens").as_i64(),
                reasoning_tokens: usage.get("reasoning_tokens").as_i64(),
                micro_usd: usage.get("micro_usd").as_i64(),
            },
            carry: v.get("carry"),
        }
    }
}
