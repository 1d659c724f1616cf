//! The ops of a pretended host that reach beyond the turn.

use std::collections::{BTreeMap, BTreeSet};

use crate::world::{space, Space, Timer, World};
use crate::{base64, Code, Error, FetchRequest, Json, Message, Op, Scope};

/// What one turn reaches of its world, and leaves to it if it ends well.
#[derive(Default)]
pub(crate) struct Visit {
    pub(crate) world: World,
    pub(crate) blobs: Vec<(String, Vec<u8>)>,
    agent: String,
    task: String,
    staged: BTreeMap<(Space, String), Option<String>>, // None deletes
    timers: Vec<Timer>,
    cancelled: BTreeSet<String>,
}

pub(crate) fn because<T>(code: Code, reason: &str, message: String) -> Result<T, Error> {
    Err(Error { reason: reason.into(), ..Error::new(code, message) })
}

const MIB: usize = 1 << 20;

impl Visit {
    /// A message that is not the system's reopens its task.
    pub(crate) fn new(world: &World, agent: &str, m: &Message) -> Visit {
        if !m.from_system() {
            world.0.borrow_mut().ended.remove(&m.task);
        }
        Visit { world: world.clone(), agent: agent.into(), task: m.task.clone(), ..Default::default() }
    }

    /// Ends a turn: what it has staged happens if it ended well.
    pub(crate) fn end(self, now: u64, well: bool, complete: bool) {
        let pending = self.pending();
        let mut w = self.world.0.borrow_mut();
        w.now = now;
        if !well {
            return;
        }
        w.timers = pending;
        w.timers.sort_by_key(|t| t.due);
        for ((space, key), value) in self.staged {
            let values = w.values.entry(space).or_default();
            match value {
                Some(value) => values.insert(key, value),
                None => values.remove(&key),
            };
        }
        w.blobs.extend(self.blobs);
        if complete {
            w.ended.insert(self.task);
        }
    }

    fn pending(&self) -> Vec<Timer> {
        let w = self.world.0.borrow();
        w.timers.iter().chain(&self.timers).filter(|t| !self.cancelled.contains(&t.id)).cloned().collect()
    }

    /// Answers an op, None if it is another's.
    pub(crate) fn reply(&mut self, now: u64, op: Op, request: &Json) -> Option<Result<Json, Error>> {
        let members: &[&str] = match op {
            Op::KV_GET | Op::KV_DELETE => &["key", "scope"],
            Op::KV_PUT => &["key", "value", "scope"],
            Op::KV_LIST => &["prefix", "after", "limit", "scope"],
            Op::KV_CAS => &["key", "expect", "value", "scope"],
            Op::TIMER_SET => &["after", "body"],
            Op::TIMER_CANCEL => &["id"],
            Op::HTTP_FETCH => &["method", "url", "headers", "body", "body_base64"],
            Op::SECRET_EXISTS => &["name"],
            Op::ACTION => &["name", "args"],
            Op::LLM_CHAT => &["model", "messages", "tools", "tool_choice", "response_schema", "max_tokens", "temperature"],
            Op::BLOB_PUT => &["data"],
            Op::BLOB_GET => &["sha256"],
            _ => return None,
        };
        if let Some((name, _)) = request.members().into_iter().find(|(name, _)| !members.contains(&name.as_str())) {
            return Some(because(Code::INVALID, "json", format!("{op}: {name} is no member; the members are {}", members.join(", "))));
        }
        let most = if op == Op::BLOB_PUT { 8 * MIB } else { 2 * MIB }; // what is too much for a blob, that says
        if request.as_text().len() > most {
            return Some(because(Code::LIMIT, "size", format!("a request of {} bytes, at most {most}", request.as_text().len())));
        }
        Some(match op {
            Op::TIMER_SET => self.timer_set(now, request),
            Op::TIMER_CANCEL => self.timer_cancel(&request.get_str("id")),
            Op::HTTP_FETCH => self.fetch(request),
            Op::ACTION => self.action(request),
            Op::LLM_CHAT => self.chat(request),
            Op::BLOB_PUT => self.blob_put(request),
            Op::BLOB_GET => self.blob_get(request),
            Op::SECRET_EXISTS => {
                let exists = self.world.0.borrow().secrets.contains(&request.get_str("name"));
                Ok(Json::object([("exists", Json::from(exists))]))
            }
            _ => self.kv(op, request),
        })
    }

    fn kv(&mut self, op: Op, request: &Json) -> Result<Json, Error> {
        let (space, key) = (self.space(request)?, request.get_str("key"));
        if op == Op::KV_LIST {
            return self.list(&space, request);
        }
        match key.len() {
            0 => return because(Code::INVALID, "key", "the key must not be empty".into()),
            1..=512 => {}
            n => return because(Code::LIMIT, "key", format!("a key of {n} bytes, at most 512")),
        }
        match op {
            Op::KV_GET => match self.seen(&space).get(&key) {
                Some(value) => return Ok(Json::object([("value", Json::from(value))])),
                None => return because(Code::NOT_FOUND, "key", format!("there is no key {key:?} in the scope {}", space.0)),
            },
            Op::KV_CAS => return self.cas(space, key, request),
            Op::KV_PUT => {
                if !request.get("value").is_string() {
                    return because(Code::INVALID, "value", "value is missing; it must be a text".into());
                }
                let value = request.get_str("value");
                fits(self.seen(&space), &key, &value)?;
                self.staged.insert((space, key), Some(value));
            }
            _ => {
                self.staged.insert((space, key), None);
            }
        }
        Json::parse("{}")
    }

    /// Finds the values that a call means, and refuses what is not granted.
    fn space(&self, request: &Json) -> Result<Space, Error> {
        let scope = match request.get_str("scope").as_str() {
            "task" => Scope::Task,
            "agent" | "" => Scope::Agent,
            "instance" => Scope::Instance,
            other => return because(Code::INVALID, "scope", format!("the scope must be task, agent or instance, not {other:?}")),
        };
        if Some(scope) > self.world.0.borrow().widest {
            let message = format!("the scope {scope} is not granted to agent {:?}; call World::grant_kv", self.agent);
            return because(Code::DENIED, "grant", message);
        }
        Ok(space(scope, &self.agent, &self.task))
    }

    /// The values of a space as the turn sees them.
    fn seen(&self, space: &Space) -> BTreeMap<String, String> {
        let mut all = self.world.0.borrow().values.get(space).cloned().unwrap_or_default();
        for ((_, key), value) in self.staged.iter().filter(|((s, _), _)| s == space) {
            match value {
                Some(value) => all.insert(key.clone(), value.clone()),
                None => all.remove(key),
            };
        }
        all
    }

    fn list(&self, space: &Space, request: &Json) -> Result<Json, Error> {
        let (prefix, after) = (request.get_str("prefix"), request.get_str("after"));
        let limit = match request.get("limit").as_i64() {
            n if n < 0 => return because(Code::INVALID, "range", "limit must not be negative".into()),
            0 => 100,
            n => n.min(1000) as usize,
        };
        let mut keys: Vec<String> = self.seen(space).into_keys().filter(|k| k.starts_with(&prefix) && *k > after).collect();
        let more = keys.len() > limit;
        keys.truncate(limit);
        let mut members = vec![("keys", Json::array(keys.iter().map(Json::from)))];
        if more {
            members.push(("next", Json::from(&keys[limit - 1])));
        }
        Ok(Json::object(members))
    }

    fn cas(&self, space: Space, key: String, request: &Json) -> Result<Json, Error> {
        if self.staged.contains_key(&(space.clone(), key.clone())) {
            return because(Code::CONFLICT, "staged", format!("the turn has already put or deleted the key {key:?}"));
        }
        let text = |name| Some(request.get(name)).filter(Json::is_string).map(|v| v.as_str());
        let (expect, value) = (text("expect"), text("value"));
        let mut w = self.world.0.borrow_mut();
        let values = w.values.entry(space).or_default();
        if let Some(value) = &value {
            fits(values.clone(), &key, value)?;
        }
        let ok = values.get(&key) == expect.as_ref();
        match value {
            _ if !ok => {}
            Some(value) => drop(values.insert(key, value)),
            None => drop(values.remove(&key)),
        }
        Ok(Json::object([("ok", Json::from(ok))]))
    }

    fn timer_set(&mut self, now: u64, request: &Json) -> Result<Json, Error> {
        let (ms, body) = (request.get("after").as_i64(), request.get_str("body"));
        if request.get("after").is_string() {
            return because(Code::INVALID, "after", "in a test, after must be a number of milliseconds".into());
        }
        if !(1..=30 * 86_400_000).contains(&ms) {
            return because(Code::INVALID, "after", format!("after is {ms} ms; it must be from 1 ms to 30 days"));
        }
        if body.len() > MIB / 4 {
            return because(Code::LIMIT, "body", format!("body has {} bytes, at most {}", body.len(), MIB / 4));
        }
        if self.pending().iter().filter(|t| t.task == self.task).count() >= 16 {
            return because(Code::LIMIT, "timers", "the task has 16 timers pending, its limit; cancel one first".into());
        }
        self.world.0.borrow_mut().made += 1;
        let id = format!("00000000-0000-4000-9000-{:012x}", self.world.0.borrow().made);
        let due = now + ms as u64 * 1_000_000;
        self.timers.push(Timer { id: id.clone(), agent: self.agent.clone(), task: self.task.clone(), body, due });
        Ok(Json::object([("id", Json::from(id))]))
    }

    fn timer_cancel(&mut self, id: &str) -> Result<Json, Error> {
        if !self.pending().iter().any(|t| t.id == id && t.agent == self.agent && t.task == self.task) {
            let message = format!("agent {:?} has no timer {id:?} pending in this task", self.agent);
            return because(Code::NOT_FOUND, "timer", message);
        }
        self.cancelled.insert(id.into());
        Json::parse("{}")
    }

    fn fetch(&self, v: &Json) -> Result<Json, Error> {
        let request = FetchRequest::from(v);
        if !["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"].contains(&request.method.as_str()) {
            return because(Code::INVALID, "request", format!("{:?} is no method", request.method));
        }
        if !request.url.starts_with("http://") && !request.url.starts_with("https://") {
            return because(Code::INVALID, "request", format!("{:?} is no absolute URL of http or https", request.url));
        }
        if !v.get("body").is_null() && base64::decode(&v.get_str("body_base64")).len() > 0 {
            return because(Code::INVALID, "request", "body and body_base64 are both set".into());
        }
        let web = self.world.0.borrow().web.clone();
        let web = match web {
            Some(web) => web,
            None => return because(Code::DENIED, "grant", format!("{} is not granted; call World::answer_http", request.url)),
        };
        let mut response = web(&request)?;
        if response.body.len() > 8 * MIB {
            return because(Code::LIMIT, "response_bytes", format!("the answer has more than {} bytes", 8 * MIB));
        }
        response.headers.iter_mut().for_each(|(name, _)| name.make_ascii_lowercase());
        Ok(Json::from(&response))
    }
}

/// Refuses a value that would exceed a quota. A scope that is over it already may
/// stay as it was.
fn fits(mut values: BTreeMap<String, String>, key: &str, value: &str) -> Result<(), Error> {
    let size = |values: &BTreeMap<String, String>| values.iter().map(|(k, v)| k.len() + v.len()).sum::<usize>();
    let was = (values.len(), size(&values));
    if value.len() > MIB / 16 {
        return because(Code::LIMIT, "value", format!("a value of {} bytes, at most {}", value.len(), MIB / 16));
    }
    values.insert(key.into(), value.into());
    let is = (values.len(), size(&values));
    if is.0 > was.0.max(1000) {
        return because(Code::LIMIT, "keys", format!("the scope would hold {} keys, at most 1000", is.0));
    }
    if is.1 > was.1.max(4 * MIB) {
        return because(Code::LIMIT, "bytes", format!("the scope would hold {} bytes, at most {}", is.1, 4 * MIB));
    }
    Ok(())
}
