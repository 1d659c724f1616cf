use std::time::Duration;

use crate::{Error, Json, Message, Op, Turn};

/// The subject of the message that a timer brings.
pub const SUBJECT_TIMER: &str = "::timer::";

impl Message {
    /// Reports whether a timer of this agent has brought the message. Its id is the
    /// timer's, its body what the timer was set with.
    pub fn from_timer(&self) -> bool {
        self.from_system() && self.subject == SUBJECT_TIMER
    }
}

impl Turn<'_> {
    /// Has the host send this agent a message of this task when a time has passed:
    /// 1 ms to 30 days by the turn's clock, in whole milliseconds. Returns the timer's
    /// id. It counts only if the turn ends well, and then survives restarts. While a
    /// timer is pending, `await_message` succeeds. A task has at most 16 pending; one
    /// more is LIMIT.
    pub fn set_timer(&mut self, after: Duration, body: &str) -> Result<String, Error> {
        let ms = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
        let request = Json::object([("after", Json::from(ms)), ("body", Json::from(body))]);
        Ok(self.call(Op::TIMER_SET, Some(&request))?.get_str("id"))
    }

    /// Ends a timer that this agent has set in this task, as long as the turn on its
    /// message has not begun; else it is NOT_FOUND. It counts only if the turn ends
    /// well.
    pub fn cancel_timer(&mut self, id: &str) -> Result<(), Error> {
        self.call(Op::TIMER_CANCEL, Some(&Json::object([("id", Json::from(id))]))).map(drop)
    }
}
