use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::json::Object;
use crate::{Code, Entry, Error, Host, Json, Message, Op};

/// The host, for a turn and its [`Pending`](crate::Pending)s.
pub(crate) type Shared<'h> = Rc<RefCell<&'h mut dyn Host>>;

/// One agent's handling of one message.
pub struct Turn<'h> {
    /// What this turn handles.
    pub message: Message,
    /// Counts the task's turns from 1.
    pub number: i64,
    /// The message's tier, 1 (highest) to 5.
    pub priority: i64,
    pub task: Task,
    pub agent: Identity,
    /// The MAIL tools and actions this agent may call.
    pub tools: Vec<Tool>,
    pub budget: Budget,
    /// The wall time left when the turn began, in milliseconds; 0 for none.
    pub deadline_ms: i64,
    /// The W3C traceparent of the turn, if the host traces.
    pub trace: String,
    /// `params` of the agent in swarm.toml, null without any.
    pub params: Json,

    pub(crate) host: Shared<'h>,
    input: Json,
    state: Option<Json>,
    notes: Vec<String>,
}

/// The part of a task that its agents see.
#[derive(Clone, Debug, Default)]
pub struct Task {
    pub id: String,
    /// Has the form role:id@swarm, as contributors have.
    pub owner: String,
    pub contributors: Vec<String>,
    pub completed: bool,
}

/// Tells which agent this turn plays.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    pub name: String,
    pub swarm: String,
    pub instance: String,
    /// The addresses this agent may write to.
    pub comm_targets: Vec<String>,
    pub can_complete: bool,
}

/// One MAIL tool or action, in the form models take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// A JSON Schema.
    pub parameters: Json,
}

/// What the turn may still use; 0 means no limit.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    pub fuel: i64,
    pub host_calls: i64,
    pub output_bytes: i64,
}

fn strings(v: &Json) -> Vec<String> {
    v.items().iter().map(Json::as_str).collect()
}

impl Task {
    fn read(v: &Json) -> Task {
        Task {
            id: v.get_str("id"),
            owner: v.get_str("owner"),
            contributors: strings(&v.get("contributors")),
            completed: v.get("completed").as_bool(),
        }
    }
}

impl Identity {
    fn read(v: &Json) -> Identity {
        Identity {
            name: v.get_str("address"),
            swarm: v.get_str("swarm"),
            instance: v.get_str("instance"),
            comm_targets: strings(&v.get("comm_targets")),
            can_complete: v.get("can_complete_tasks").as_bool(),
        }
    }
}

impl From<&Tool> for Json {
    fn from(t: &Tool) -> Json {
        Object::new().text("name", &t.name).text("description", &t.description).set("parameters", &t.parameters).json()
    }
}

impl From<&Json> for Tool {
    fn from(v: &Json) -> Tool {
        Tool { name: v.get_str("name"), description: v.get_str("description"), parameters: v.get("parameters") }
    }
}

impl Budget {
    fn read(v: &Json) -> Budget {
        Budget {
            fuel: v.get("fuel").as_i64(),
            host_calls: v.get("host_calls").as_i64(),
            output_bytes: v.get("output_bytes").as_i64(),
        }
    }
}

impl<'h> Turn<'h> {
    pub(crate) fn new(host: &'h mut dyn Host) -> Result<Turn<'h>, Error> {
        let input = Json::parse_bytes(&host.input())
            .map_err(|_| Error::new(Code::INVALID, "the turn input is no JSON"))?;
        Ok(Turn::of(host, input))
    }

    /// A turn on an input, of which anything may be missing.
    pub(crate) fn of(host: &'h mut dyn Host, input: Json) -> Turn<'h> {
        Turn {
            message: Message::read(&input.get("message")),
            number: input.get("turn").as_i64(),
            priority: input.get("priority").as_i64(),
            task: Task::read(&input.get("task")),
            agent: Identity::read(&input.get("agent")),
            tools: input.get("tools").items().iter().map(Tool::from).collect(),
            budget: Budget::read(&input.get("budget")),
            deadline_ms: input.get("deadline_ms").as_i64(),
            trace: input.get_str("trace"),
            params: input.get("params"),
            host: Rc::new(RefCell::new(host)),
            input,
            state: None,
            notes: Vec::new(),
        }
    }

    /// What the last committed turn of this agent in this task left with
    /// [`set_state`](Turn::set_state), or what this turn has set; null at first.
    pub fn state(&self) -> Json {
        self.state.clone().unwrap_or_else(|| self.input.get("state"))
    }

    /// Keeps a value, up to 64 KiB, for the next turn of this agent in this task;
    /// null forgets it. It counts only if the turn ends well.
    pub fn set_state(&mut self, state: Json) {
        self.state = Some(state);
    }

    /// Adds a line to the agent's history. Later turns see it there.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Runs any op. Without a request no bytes are sent.
    pub fn call(&mut self, op: Op, request: Option<&Json>) -> Result<Json, Error> {
        let request = request.map_or("", Json::as_text);
        match self.host.borrow_mut().call(op, request.as_bytes()) {
            Ok([]) => Ok(Json::null()),
            Ok(answer) => answer_of(op, answer),
            Err(refused) => Err(Error::of(op, refused)),
        }
    }

    /// Writes a line to the operator's log. A line the host refuses (there is a
    /// quota) is lost.
    pub fn log(&mut self, message: &str) {
        self.log_at("info", message, &[]);
    }

    /// Is [`log`](Turn::log) with a level (debug, info, warn or error) and fields.
    pub fn log_at(&mut self, level: &str, message: &str, fields: &[(&str, Json)]) {
        let mut o = Object::new();
        o.text("level", level).text("message", message).some("fields", Json::object(fields.iter().cloned()));
        let _ = self.call(Op::LOG, Some(&o.json())); // lost, as said
    }

    /// Reads the turn's clock. It stands still while the agent computes and moves
    /// with calls and sleeps, so a turn that runs again sees the same times.
    pub fn now(&mut self) -> SystemTime {
        UNIX_EPOCH + Duration::from_nanos(self.host.borrow_mut().now())
    }

    /// Waits, and moves the turn's clock by exactly that span.
    pub fn sleep(&mut self, span: Duration) {
        self.host.borrow_mut().sleep(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Asks the host for the real time, as 2026-03-01T09:30:00.120000+00:00.
    pub fn wall_time(&mut self) -> Result<String, Error> {
        Ok(self.call(Op::CLOCK_NOW, None)?.get_str("time"))
    }

    /// Gives 32 hexadecimal digits that differ between turns and repeat when a
    /// turn runs again.
    pub fn random(&mut self) -> Result<String, Error> {
        Ok(self.call(Op::RANDOM, None)?.get_str("value"))
    }

    /// How long the whole history is, as of the start of the turn.
    pub fn history_count(&self) -> i64 {
        self.input.get("history").get("count").as_i64()
    }

    /// The newest entries of the history, oldest first: at most the last 50 or
    /// 64 KiB. [`history_after`](Turn::history_after) reads further back.
    pub fn history(&self) -> Vec<Entry> {
        self.input.get("history").get("tail").items().iter().map(Entry::read).collect()
    }

    /// Reads entries with a `seq` above `after`, oldest first, and where the next
    /// page begins, 0 at the end.
    pub fn history_after(&mut self, after: i64, limit: i64) -> Result<(Vec<Entry>, i64), Error> {
        let answer = self.call(Op::HISTORY, Some(&Object::new().int("after", after).int("limit", limit).json()))?;
        Ok((answer.get("entries").items().iter().map(Entry::read).collect(), answer.get("next").as_i64()))
    }

    /// What the turn leaves behind; empty when nothing changed.
    pub(crate) fn result(&self) -> String {
        let mut o = Object::new();
        if let Some(state) = &self.state {
            o.set("state", state);
        }
        match o.some("notes", Json::array(self.notes.iter().map(Json::from))).json() {
            v if v.as_text() == "{}" => String::new(),
            v => v.to_string(),
        }
    }
}

/// Decodes the answer of an op.
pub(crate) fn answer_of(op: Op, body: &[u8]) -> Result<Json, Error> {
    Json::parse_bytes(body).map_err(|_| Error::new(Code::INTERNAL, format!("{op}: the answer is no JSON")))
}
