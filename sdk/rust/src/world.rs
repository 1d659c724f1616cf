//! What [`testing`](crate::testing) keeps from one turn to the next.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::{
    digest, Address, ChatRequest, ChatResponse, Error, FetchRequest, FetchResponse, Json, Message, Scope, RESPONSE, SUBJECT_TIMER,
};

/// What lasts from one turn of a test to the next, beside the agent's state: values,
/// blobs, timers and the clock; and what the operator has granted, at first nothing. A clone
/// is the same world. All agents and tasks in it are of one instance.
#[derive(Clone, Default)]
pub struct World(pub(crate) Rc<RefCell<Lasting>>);

type Web = Rc<dyn Fn(&FetchRequest) -> Result<FetchResponse, Error>>;

type Mind = Rc<dyn Fn(&ChatRequest) -> Result<ChatResponse, Error>>;

type Action = Rc<dyn Fn(&Json) -> Result<Json, Error>>;

#[derive(Default)]
pub(crate) struct Lasting {
    pub widest: Option<Scope>,
    pub secrets: Vec<String>,
    pub web: Option<Web>,
    pub mind: Option<Mind>,
    pub actions: BTreeMap<String, Action>,
    pub blobs: BTreeMap<String, Vec<u8>>,
    pub now: u64,
    pub values: BTreeMap<Space, BTreeMap<String, String>>,
    pub timers: Vec<Timer>,
    pub ended: BTreeSet<String>, // tasks that are complete
    pub made: u32,
}

/// A timer that a turn has set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    pub id: String,
    pub agent: String,
    pub task: String,
    pub body: String,
    /// On the turn's clock, in nanoseconds since 1970.
    pub due: u64,
}

/// Tells the values of one scope from those of others.
pub(crate) type Space = (Scope, String, String);

pub(crate) fn space(scope: Scope, agent: &str, task: &str) -> Space {
    let of = |text: &str, widest: Scope| if scope <= widest { text.to_string() } else { String::new() };
    (scope, of(agent, Scope::Agent), of(task, Scope::Task))
}

impl World {
    /// Grants values up to the widest scope.
    pub fn grant_kv(self, widest: Scope) -> World {
        self.0.borrow_mut().widest = Some(widest);
        self
    }

    /// Grants a secret, by its name.
    pub fn grant_secret(self, name: &str) -> World {
        self.0.borrow_mut().secrets.push(name.into());
        self
    }

    /// Grants HTTP requests, and answers them.
    pub fn answer_http(self, web: impl Fn(&FetchRequest) -> Result<FetchResponse, Error> + 'static) -> World {
        self.0.borrow_mut().web = Some(Rc::new(web));
        self
    }

    /// Grants all models, and answers for them, also where the agent reads the answer
    /// piece by piece.
    pub fn answer_llm(self, mind: impl Fn(&ChatRequest) -> Result<ChatResponse, Error> + 'static) -> World {
        self.0.borrow_mut().mind = Some(Rc::new(mind));
        self
    }

    /// Gives an action, and answers its calls by their args.
    pub fn answer_action(self, name: &str, action: impl Fn(&Json) -> Result<Json, Error> + 'static) -> World {
        self.0.borrow_mut().actions.insert(name.into(), Rc::new(action));
        self
    }

    /// A blob, by its address.
    pub fn blob(&self, sha256: &str) -> Option<Vec<u8>> {
        self.0.borrow().blobs.get(sha256).cloned()
    }

    /// Keeps a blob that the next turn finds, and returns its address.
    pub fn set_blob(&self, bytes: &[u8]) -> String {
        let address = digest::sha256(bytes);
        self.0.borrow_mut().blobs.insert(address.clone(), bytes.to_vec());
        address
    }

    /// A committed value, as an agent in a task has it; an empty agent or task is the
    /// one of an [`Input`](crate::testing::Input) that names none.
    pub fn value(&self, scope: Scope, agent: &str, task: &str, key: &str) -> Option<String> {
        self.0.borrow().values.get(&space(scope, or(agent, AGENT), or(task, TASK)))?.get(key).cloned()
    }

    /// Sets a value that the next turn finds.
    pub fn set_value(&self, scope: Scope, agent: &str, task: &str, key: &str, value: &str) {
        let mut w = self.0.borrow_mut();
        let values = w.values.entry(space(scope, or(agent, AGENT), or(task, TASK))).or_default();
        values.insert(key.into(), value.into());
    }

    /// The timers that are pending, the next one first.
    pub fn timers(&self) -> Vec<Timer> {
        self.0.borrow().timers.clone()
    }

    /// Takes the next timer of a task that is not complete, and moves the clock to
    /// where it is due. The message is that of a turn's input.
    pub fn fire(&self) -> Option<Message> {
        let mut w = self.0.borrow_mut();
        let next = w.timers.iter().position(|t| !w.ended.contains(&t.task))?;
        let t = w.timers.remove(next);
        w.now = w.now.max(t.due);
        Some(Message {
            id: t.id,
            time: timestamp(t.due),
            kind: RESPONSE.into(),
            task: t.task,
            sender: Address::new("system", "test"),
            recipients: vec![Address::new("agent", &t.agent)],
            subject: SUBJECT_TIMER.into(),
            body: t.body,
            ..Default::default()
        })
    }

    /// Where a turn's clock begins, 0 if none has been.
    pub(crate) fn now(&self) -> u64 {
        self.0.borrow().now
    }
}

/// The agent and task of an input that names none.
pub(crate) const AGENT: &str = "agent";
pub(crate) const TASK: &str = "5b0c1b0a-52a3-4f5e-8f64-3d1e9a7c2e90";

fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    match text {
        "" => otherwise,
        _ => text,
    }
}

/// Writes a time as the contract does.
pub(crate) fn timestamp(ns: u64) -> String {
    let (days, of_day) = (ns / 86_400_000_000_000, ns % 86_400_000_000_000 / 1000);
    // The days since 0000-03-01, in years of 365.2425: leap days stand at their ends.
    let z = days + 719_468;
    let (era, day) = (z / 146_097, z % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (d, m) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let y = era * 400 + year + u64::from(m < 3);
    let (s, us) = (of_day / 1_000_000, of_day % 1_000_000);
    format!("{y:04}-{m:02}-{d:02}T{:02}:{:02}:{:02}.{us:06}+00:00", s / 3600, s / 60 % 60, s % 60)
}
