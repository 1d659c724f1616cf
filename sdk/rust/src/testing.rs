//! A pretended host, so that an agent's turns can be tested with plain `cargo
//! test`: build an [`Input`], call [`run`], look at the [`Outcome`].
//!
//! ```
//! use skep::{testing, Agent, Error, Turn};
//!
//! struct Greeter;
//!
//! impl Agent for Greeter {
//!     fn turn(&self, t: &mut Turn) -> Result<(), Error> {
//!         t.task_complete(&format!("Hello, {}!", t.message.body))
//!     }
//! }
//!
//! let out = testing::run(&Greeter, testing::Input::of("bees"));
//! assert_eq!(out.mail[0].finish, "Hello, bees!");
//! ```

use std::time::Duration;

use crate::json::Object;
use crate::stream::{called_off, Answering, Flight};
use crate::visit::Visit;
use crate::world::{timestamp, AGENT, TASK};
use crate::{guest, reach, Address, Agent, Code, Descriptor, Entry, Error, Host, Json, Message, Op, ABI, REQUEST};

pub use crate::world::{Timer, World};

/// Replaces what the pretended host says: an answer, a refusal, or None to leave
/// the op to the default.
pub type Answer = Box<dyn Fn(Op, &Json) -> Option<Result<Json, Error>>>;

/// Answers an op with a [`Stream`], or leaves it to [`Input::answer`].
pub type Streams = Box<dyn Fn(Op, &Json) -> Option<Stream>>;

/// An answer that takes its time, comes in pieces, or fails late. An agent that
/// calls the op gets it as one.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// How long the turn's clock must move before there is something to read: waiting
    /// and reading move it.
    pub after: Duration,
    /// Are read one by one. No JSON is made of them.
    pub chunks: Vec<String>,
    /// Stands at the end, if set.
    pub error: Option<Error>,
}

/// One message for one agent. Empty fields get values that make sense: a request
/// from the user to an agent `agent` in swarm `test`.
#[derive(Default)]
pub struct Input {
    pub message: Message,
    pub agent: String,
    pub comm_targets: Vec<String>,
    pub cannot_complete: bool,
    /// What the last turn left; [`Outcome::state`] of one turn is the state of
    /// the next.
    pub state: Json,
    pub params: Json,
    pub history: Vec<Entry>,
    /// Is asked first, if set. An error of CANCELLED calls the turn off: from then on
    /// the host refuses as a real one does. So does one of a [`Stream`].
    pub answer: Option<Answer>,
    /// Is asked even before that.
    pub streams: Option<Streams>,
    /// What this turn shares with others: values, timers, the clock, what is granted.
    pub world: World,
}

impl Input {
    /// A request with a body.
    pub fn of(body: &str) -> Input {
        Input { message: Message { body: body.into(), ..Default::default() }, ..Default::default() }
    }
}

/// One op the agent called.
pub struct Call {
    pub op: Op,
    /// Null where no bytes were sent.
    pub request: Json,
    pub refused: Option<Error>,
    /// The agent did not wait for it.
    pub submitted: bool,
    /// The agent closed it before its end.
    pub closed: bool,
}

/// One thing the turn showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Emit {
    /// `progress`, `chunk` or `note`.
    pub kind: &'static str,
    pub text: String,
    pub fraction: Option<f64>,
}

/// One value that the turn counted or set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metric {
    pub name: String,
    pub value: f64,
    pub gauge: bool,
    pub labels: Vec<(String, String)>,
}

/// A part of the turn that the operator sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    pub error: String,
    /// The turn has ended it.
    pub ended: bool,
}

/// One MAIL tool call that was accepted, with the arguments the tool has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mail {
    pub tool: String,
    pub target: String,
    pub targets: Vec<String>,
    pub subject: String,
    pub body: String,
    pub finish: String,
    pub note: String,
    pub reason: String,
}

/// How the turn ended.
#[derive(Default)]
pub struct Outcome {
    /// What the agent returned; None when the turn would be committed.
    pub error: Option<Error>,
    pub calls: Vec<Call>,
    pub mail: Vec<Mail>,
    pub emits: Vec<Emit>,
    pub metrics: Vec<Metric>,
    pub spans: Vec<Span>,
    pub logs: Vec<String>,
    pub notes: Vec<String>,
    /// What a later turn sees: the input's when the turn set none or failed.
    pub state: Json,
    /// The turn's clock at the end, in nanoseconds since 1970.
    pub end: u64,
}

/// Runs one turn of an agent. A panic of the agent passes through.
pub fn run(agent: &impl Agent, input: Input) -> Outcome {
    let mut host = Pretended::new(input);
    let status = guest::drive(agent, &mut host);
    let mut out = host.out;
    out.end = host.now;
    host.visit.end(host.now, status == 0, out.mail.iter().any(|m| m.tool == "task_complete"));
    let result = Json::parse_bytes(&host.output).unwrap_or_default();
    if status != 0 {
        let code = Code::named(&result.get_str("code")).unwrap_or(Code::INTERNAL);
        out.error = Some(Error::from_host(code, &host.output));
        return out;
    }
    out.notes = result.get("notes").items().iter().map(Json::as_str).collect();
    if let Some((_, state)) = result.members().into_iter().find(|(name, _)| name == "state") {
        out.state = state;
    }
    out
}

/// Runs one call of an action, and returns its answer.
pub fn act(agent: &impl Agent, name: &str, args: Json) -> Result<Json, Error> {
    act_in(agent, name, args, Input::default())
}

/// Is [`act`] with the params, the world and the answers of an input. The rest of the
/// input is a turn's, which an action does not see.
pub fn act_in(agent: &impl Agent, name: &str, args: Json, input: Input) -> Result<Json, Error> {
    let params = input.params.clone();
    let mut host = Pretended::new(input);
    host.input = Json::object([("name", Json::from(name)), ("args", args), ("params", params)]).to_string().into_bytes();
    let status = guest::drive_action(agent, &mut host);
    host.visit.end(host.now, status == 0, false);
    let answer = Json::parse_bytes(&host.output)?;
    if status != 0 {
        let code = Code::named(&answer.get_str("code")).unwrap_or(Code::INTERNAL);
        return Err(Error::from_host(code, &host.output));
    }
    Ok(answer)
}

/// The descriptor as the host reads it.
pub fn describe(d: &Descriptor) -> Json {
    let mut host = Pretended::new(Input::default());
    guest::drive_describe(d, &mut host);
    Json::parse_bytes(&host.output).unwrap_or_default()
}

/// What the pretended clock begins with: 2026-01-01T12:00:00Z.
const START: u64 = 1_767_268_800_000_000_000;

/// Pretends to be skep for one turn.
struct Pretended {
    answer: Option<Answer>,
    streams: Option<Streams>,
    flight: Flight,
    visit: Visit,
    cannot_complete: bool,
    input: Vec<u8>,
    output: Vec<u8>,
    last: Vec<u8>,
    out: Outcome,
    now: u64,
    made: u32,
    ended: bool,
}

impl Pretended {
    fn new(mut input: Input) -> Pretended {
        let now = input.world.now().max(START);
        fill(&mut input, now);
        Pretended {
            visit: Visit::new(&input.world, &input.agent, &input.message),
            input: encode(&input).to_string().into_bytes(),
            answer: input.answer,
            streams: input.streams,
            flight: Flight::default(),
            cannot_complete: input.cannot_complete,
            output: Vec::new(),
            last: Vec::new(),
            out: Outcome { state: input.state, ..Default::default() },
            now,
            made: 0,
            ended: false,
        }
    }

    fn reply(&mut self, op: Op, request: &Json) -> Result<Json, Error> {
        if let Some(said) = self.answer.as_ref().and_then(|answer| answer(op, request)) {
            return said;
        }
        match op {
            Op::MAIL => self.mail(request),
            Op::LOG => {
                self.out.logs.push(request.get_str("message"));
                Ok(Json::parse("{}")?)
            }
            Op::EMIT => self.emit(request),
            Op::METRIC => reach::metric(&mut self.out.metrics, request),
            Op::SPAN => reach::span(&mut self.out.spans, request),
            Op::CLOCK_NOW => Ok(Json::object([("time", Json::from(timestamp(self.now)))])),
            Op::HISTORY => Ok(Json::object([("entries", Json::array([]))])),
            Op::RANDOM => {
                self.made += 1;
                Ok(Json::object([("value", Json::from(format!("{:032x}", self.made)))]))
            }
            _ => match self.visit.reply(self.now, op, request) {
                Some(said) => said,
                None => Err(Error::new(Code::UNSUPPORTED, format!("this host has no {op}"))),
            },
        }
    }

    /// Records what the turn shows.
    fn emit(&mut self, request: &Json) -> Result<Json, Error> {
        let members = request.members();
        let kind = ["progress", "chunk", "note"].into_iter().find(|kind| members.iter().any(|(name, _)| name == kind));
        let kind = kind.ok_or_else(|| Error::new(Code::INVALID, "nothing to show"))?;
        let (what, fraction) = (request.get(kind), request.get(kind).get("fraction"));
        self.out.emits.push(Emit {
            kind,
            text: if kind == "progress" { what.get_str("text") } else { what.as_str() },
            fraction: if fraction.is_null() { None } else { Some(fraction.as_f64()) },
        });
        Ok(Json::object([("status", Json::from("ok"))]))
    }

    /// Runs an op. An error it gives at once has happened; one of a stream comes when
    /// that is read.
    fn start(&mut self, op: Op, request: &[u8], submitted: bool) -> Result<Answering, Error> {
        let request = Json::parse_bytes(request).unwrap_or_default();
        let off = self.flight.off && op != Op::LOG;
        let stream = self.streams.as_ref().filter(|_| !off).and_then(|streams| streams(op, &request));
        let call = self.out.calls.len();
        let started = match stream {
            _ if off => Err(called_off(op)),
            Some(s) => Ok(Answering::new(op, call, self.now, s)),
            None => self.reply(op, &request).map(|answer| {
                let chunks = if submitted && op == Op::LLM_CHAT { reach::pieces(&answer) } else { vec![answer.to_string()] };
                Answering::new(op, call, self.now, Stream { chunks, ..Default::default() })
            }),
        };
        self.out.calls.push(Call { op, request, refused: None, submitted, closed: false });
        started.map_err(|e| self.failed(Some(call), e))
    }

    /// Notes an op's failure, which may be that the turn is called off.
    fn failed(&mut self, call: Option<usize>, e: Error) -> Error {
        self.flight.off |= e.code == Code::CANCELLED;
        if let Some(call) = call {
            self.out.calls[call].refused = Some(e.clone());
        }
        e
    }

    /// Records a MAIL tool call, and refuses what a turn may no longer do.
    fn mail(&mut self, request: &Json) -> Result<Json, Error> {
        let (tool, args) = (request.get_str("tool"), request.get("args"));
        if !TOOLS.contains(&tool.as_str()) {
            return Err(Error::new(Code::NOT_FOUND, format!("no tool {tool:?}")));
        }
        if tool == "task_complete" && self.cannot_complete {
            return Err(Error::new(Code::DENIED, "this agent cannot complete tasks"));
        }
        if self.ended {
            return Err(Error::new(Code::CONFLICT, "the turn has awaited or completed"));
        }
        self.ended = tool == "await_message" || tool == "task_complete";
        let mut answer = Object::new();
        answer.text("id", &self.new_id());
        if tool == "send_request" {
            answer.text("request_id", &self.new_id());
        }
        self.out.mail.push(Mail {
            tool,
            target: args.get_str("target"),
            targets: args.get("targets").items().iter().map(Json::as_str).collect(),
            subject: args.get_str("subject"),
            body: args.get_str("body"),
            finish: args.get_str("finish_message"),
            note: args.get_str("note"),
            reason: args.get_str("reason"),
        });
        Ok(answer.text("text", "SUCCESS").json())
    }

    fn new_id(&mut self) -> String {
        self.made += 1;
        format!("00000000-0000-4000-8000-{:012x}", self.made)
    }
}

impl Host for Pretended {
    fn input(&mut self) -> Vec<u8> {
        self.input.clone()
    }

    fn output(&mut self, data: &[u8]) -> Result<(), Code> {
        self.output.extend_from_slice(data);
        Ok(())
    }

    fn call(&mut self, op: Op, request: &[u8]) -> Result<&[u8], (Code, Vec<u8>)> {
        let started = self.start(op, request, false);
        match started.and_then(|answer| answer.whole(&mut self.now).map_err(|e| self.failed(Some(answer.call), e))) {
            Ok(all) => {
                self.last = all;
                Ok(&self.last)
            }
            Err(e) => Err(refused(e)),
        }
    }

    fn submit(&mut self, op: Op, request: &[u8]) -> Result<i32, (Code, Vec<u8>)> {
        self.flight.room(op).map_err(refused)?;
        let answer = self.start(op, request, true).map_err(refused)?;
        Ok(self.flight.add(answer))
    }

    fn wait(&mut self, handles: &[i32], timeout_ms: i32) -> Result<usize, (Code, Vec<u8>)> {
        self.flight.wait(&mut self.now, handles, timeout_ms).map_err(refused)
    }

    fn read(&mut self, handle: i32, to: &mut [u8]) -> Result<usize, (Code, Vec<u8>)> {
        let call = self.flight.call(handle);
        let got = self.flight.read(&mut self.now, handle, to);
        got.map_err(|e| refused(self.failed(call, e)))
    }

    fn close(&mut self, handle: i32) {
        if let Some(call) = self.flight.close(self.now, handle) {
            self.out.calls[call].closed = self.out.calls[call].refused.is_none();
        }
    }

    fn now(&mut self) -> u64 {
        self.now
    }

    fn sleep(&mut self, nanoseconds: u64) {
        self.now += nanoseconds;
    }
}

/// An error as it crosses the boundary.
fn refused(e: Error) -> (Code, Vec<u8>) {
    (e.code, e.encode().to_string().into_bytes())
}

/// MAIL's tools, as far as a host without peers has them.
const TOOLS: [&str; 9] = [
    "send_request", "send_response", "send_interrupt", "send_broadcast", "acknowledge_broadcast", "ignore_broadcast",
    "await_message", "help", "task_complete",
];

fn fill(input: &mut Input, now: u64) {
    let set = |s: &mut String, otherwise: &str| {
        if s.is_empty() {
            *s = otherwise.into();
        }
    };
    let m = &mut input.message;
    set(&mut input.agent, AGENT);
    set(&mut m.id, "8d2f6b0e-6f0e-4a39-9f5e-0d2c6a1c7b11");
    set(&mut m.time, &timestamp(now));
    set(&mut m.kind, REQUEST);
    set(&mut m.task, TASK);
    set(&mut m.ref_id, "0f3a7a34-9d0e-4f0c-9a55-6a6a0a3b8f21");
    set(&mut m.subject, "New Message");
    set(&mut m.sender.kind, "user");
    set(&mut m.sender.name, "test");
    if m.recipients.is_empty() {
        m.recipients.push(Address::new("agent", &input.agent));
    }
}

/// Writes the turn's input as a host does.
fn encode(input: &Input) -> Json {
    let tool = |name: &str| Json::object([("name", Json::from(name)), ("description", Json::from("")), ("parameters", Json::null())]);
    let tools = TOOLS.iter().filter(|name| **name != "task_complete" || !input.cannot_complete);
    let task = [
        ("id", Json::from(&input.message.task)),
        ("owner", Json::from("user:test@test")),
        ("contributors", Json::array([])),
        ("completed", Json::from(false)),
    ];
    let agent = [
        ("address", Json::from(&input.agent)),
        ("swarm", Json::from("test")),
        ("instance", Json::from("user:test@test")),
        ("comm_targets", Json::array(input.comm_targets.iter().map(Json::from))),
        ("can_complete_tasks", Json::from(!input.cannot_complete)),
    ];
    let history = [
        ("count", Json::from(input.history.len() as i64)),
        ("tail", Json::array(input.history.iter().map(Entry::encode))),
    ];
    let budget = [("fuel", Json::from(0)), ("host_calls", Json::from(1000)), ("output_bytes", Json::from(1 << 20))];
    Json::object([
        ("v", Json::from(ABI)),
        ("turn", Json::from(1)),
        ("task", Json::object(task)),
        ("agent", Json::object(agent)),
        ("tools", Json::array(tools.map(|name| tool(name)))),
        ("message", input.message.encode()),
        ("priority", Json::from(4)),
        ("history", Json::object(history)),
        ("state", input.state.clone()),
        ("params", input.params.clone()),
        ("deadline_ms", Json::from(600_000)),
        ("budget", Json::object(budget)),
    ])
}
