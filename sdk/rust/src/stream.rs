//! What [`testing`](crate::testing) has in flight: answers that were submitted for
//! and are not read yet, and the clock they come by.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;

use crate::testing::Stream;
use crate::{Code, Error, Op};

/// The answer to one op as it is read.
pub(crate) struct Answering {
    op: Op,
    /// Its place among the calls.
    pub(crate) call: usize,
    ready: u64,
    chunks: VecDeque<Vec<u8>>,
    error: Option<Error>,
}

impl Answering {
    pub(crate) fn new(op: Op, call: usize, now: u64, s: Stream) -> Answering {
        let chunks = s.chunks.into_iter().filter(|c| !c.is_empty()).map(String::into_bytes);
        Answering { op, call, ready: now + s.after.as_nanos() as u64, chunks: chunks.collect(), error: s.error }
    }

    /// All of it, at the time when it is there.
    pub(crate) fn whole(&self, now: &mut u64) -> Result<Vec<u8>, Error> {
        *now = self.ready.max(*now);
        let all = self.chunks.iter().flatten().copied().collect();
        self.error.clone().map_or(Ok(all), Err)
    }

    /// Tells whether it is there and says that the turn is called off.
    fn calls_off(&self) -> bool {
        self.chunks.is_empty() && matches!(&self.error, Some(e) if e.code == Code::CANCELLED)
    }
}

/// How many handles a turn may have open.
const OPEN: usize = 64;

#[derive(Default)]
pub(crate) struct Flight {
    open: BTreeMap<i32, Answering>,
    made: i32,
    /// The turn is called off.
    pub(crate) off: bool,
}

impl Flight {
    /// Refuses an op for which there is no handle.
    pub(crate) fn room(&self, op: Op) -> Result<(), Error> {
        if self.open.len() < OPEN {
            return Ok(());
        }
        Err(fault(op, Code::LIMIT, "handles", "64 handles are open"))
    }

    pub(crate) fn add(&mut self, answer: Answering) -> i32 {
        self.made += 1;
        self.open.insert(self.made, answer);
        self.made
    }

    /// The place of a handle's op among the calls.
    pub(crate) fn call(&self, handle: i32) -> Option<usize> {
        self.open.get(&handle).map(|a| a.call)
    }

    /// Finds the first that is ready, and moves the clock to that time.
    pub(crate) fn wait(&mut self, now: &mut u64, handles: &[i32], timeout_ms: i32) -> Result<usize, Error> {
        if self.off {
            return Err(called_off("wait"));
        }
        let ready = |handle: &i32| self.open.get(handle).map(|a| a.ready.max(*now));
        let times: Option<Vec<u64>> = handles.iter().map(ready).collect();
        let times = times.ok_or_else(|| fault("wait", Code::NOT_FOUND, "handle", "no such handle is open"))?;
        let at = times.iter().min().copied().ok_or_else(|| fault("wait", Code::INVALID, "handles", "no handles"))?;
        let end = *now + timeout_ms.max(0) as u64 * 1_000_000;
        if timeout_ms >= 0 && at > end {
            *now = end;
            return Err(fault("wait", Code::DEADLINE, "timeout", "nothing is ready yet"));
        }
        *now = at;
        let first = times.iter().position(|t| *t == at).unwrap_or_default();
        if self.open[&handles[first]].calls_off() {
            self.off = true;
            return Err(called_off("wait"));
        }
        Ok(first)
    }

    /// Gives what is left of the piece that comes next.
    pub(crate) fn read(&mut self, now: &mut u64, handle: i32, to: &mut [u8]) -> Result<usize, Error> {
        let off = self.off;
        let unknown = || fault("read", Code::NOT_FOUND, "handle", "no such handle is open");
        let a = self.open.get_mut(&handle).ok_or_else(unknown)?;
        if off && (a.ready > *now || a.chunks.is_empty()) {
            return Err(called_off(a.op));
        }
        *now = a.ready.max(*now);
        let piece = match a.chunks.front_mut() {
            Some(piece) => piece,
            None => return a.error.clone().map_or(Ok(0), Err),
        };
        let n = piece.len().min(to.len());
        to[..n].copy_from_slice(&piece[..n]);
        piece.drain(..n);
        if piece.is_empty() {
            a.chunks.pop_front();
        }
        Ok(n)
    }

    /// Forgets a handle, and gives its place among the calls if there was more to
    /// read.
    pub(crate) fn close(&mut self, now: u64, handle: i32) -> Option<usize> {
        let a = self.open.remove(&handle)?;
        let unread = !a.chunks.is_empty() || a.error.is_some() || a.ready > now;
        if unread { Some(a.call) } else { None }
    }
}

pub(crate) fn called_off(name: impl Display) -> Error {
    fault(name, Code::CANCELLED, "cancelled", "the turn is called off")
}

fn fault(name: impl Display, code: Code, reason: &str, message: &str) -> Error {
    Error { op: name.to_string(), reason: reason.into(), ..Error::new(code, message) }
}
