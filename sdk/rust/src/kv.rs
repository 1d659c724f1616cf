use std::fmt;

use crate::{Code, Error, Json, Op, Turn};

/// Says who shares the values of a [`Kv`]. The operator grants the widest one, as in
/// `allow = { kv = "agent" }`; a wider one is DENIED.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// This agent in this task.
    Task,
    /// This agent in all tasks of its instance.
    Agent,
    /// All agents and tasks of the instance.
    Instance,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Scope::Task => "task",
            Scope::Agent => "agent",
            Scope::Instance => "instance",
        })
    }
}

/// Texts that last beyond the turn, under keys of 1 to 512 bytes, each at most
/// 64 KiB. A scope holds 1,000 keys and 4 MiB; what is more is LIMIT.
pub struct Kv<'t, 'h> {
    turn: &'t mut Turn<'h>,
    scope: Scope,
}

impl<'h> Turn<'h> {
    /// The values of a scope: `t.kv(Scope::Agent).get("seen")`. It calls nothing.
    pub fn kv(&mut self, scope: Scope) -> Kv<'_, 'h> {
        Kv { turn: self, scope }
    }
}

impl Kv<'_, '_> {
    fn call<const N: usize>(&mut self, op: Op, members: [(&str, Json); N]) -> Result<Json, Error> {
        let scope = ("scope", Json::from(self.scope.to_string()));
        self.turn.call(op, Some(&Json::object(members.into_iter().chain([scope]))))
    }

    /// A value: what this turn has put, else what is committed.
    pub fn get(&mut self, key: &str) -> Result<Option<String>, Error> {
        match self.call(Op::KV_GET, [("key", Json::from(key))]) {
            Ok(answer) => Ok(Some(answer.get_str("value"))),
            Err(e) if e.code == Code::NOT_FOUND => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Sets a value. The turn sees it at once, others when the turn has ended well;
    /// the last turn to end wins.
    pub fn put(&mut self, key: &str, value: &str) -> Result<(), Error> {
        self.call(Op::KV_PUT, [("key", Json::from(key)), ("value", Json::from(value))]).map(drop)
    }

    /// Removes a value, as `put` sets one. It is no error if there is none.
    pub fn delete(&mut self, key: &str) -> Result<(), Error> {
        self.call(Op::KV_DELETE, [("key", Json::from(key))]).map(drop)
    }

    /// Keys that begin with `prefix` and are greater than `after`, in the order of
    /// their bytes, at most `limit` of them (0 is 100, at most 1,000); and the `after`
    /// of the next page, None at the end.
    pub fn list(&mut self, prefix: &str, after: &str, limit: u32) -> Result<(Vec<String>, Option<String>), Error> {
        let page = [("prefix", Json::from(prefix)), ("after", Json::from(after)), ("limit", Json::from(i64::from(limit)))];
        let answer = self.call(Op::KV_LIST, page)?;
        let keys = answer.get("keys").items().iter().map(Json::as_str).collect();
        Ok((keys, Some(answer.get_str("next")).filter(|next| !next.is_empty())))
    }

    /// All keys that begin with `prefix`.
    pub fn keys(&mut self, prefix: &str) -> Result<Vec<String>, Error> {
        let (mut all, mut next) = self.list(prefix, "", 1000)?;
        while let Some(after) = next {
            let (page, more) = self.list(prefix, &after, 1000)?;
            all.extend(page);
            next = more;
        }
        Ok(all)
    }

    /// Replaces a value at once if it is the one expected, and reports whether it
    /// was: `expect` of None wants none there, `value` of None deletes. It stays even
    /// if the turn fails, and does not see what the turn has put: such a key is
    /// CONFLICT.
    pub fn cas(&mut self, key: &str, expect: Option<&str>, value: Option<&str>) -> Result<bool, Error> {
        let text = |v: Option<&str>| v.map_or_else(Json::null, Json::from);
        let answer = self.call(Op::KV_CAS, [("key", Json::from(key)), ("expect", text(expect)), ("value", text(value))])?;
        Ok(answer.get("ok").as_bool())
    }
}
