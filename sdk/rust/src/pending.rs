use std::io;
use std::time::Duration;

use crate::turn::{answer_of, Shared};
use crate::{Error, Json, Op, Turn};

/// An op that was started with [`Turn::submit`], and its answer as far as it is not
/// read yet. Iterate over it for the pieces as they come, or wrap it in a
/// [`std::io::BufReader`] for lines: a piece has no boundaries of its own. Dropping
/// it calls the op off.
pub struct Pending<'h> {
    host: Shared<'h>,
    op: Op,
    handle: i32, // 0 when nothing is open
    failed: Option<Error>,
    over: bool, // the reader has seen the end, or the error
}

impl<'h> Turn<'h> {
    /// Starts any op and does not wait for it. If the host refuses, reading tells:
    /// there is one place for errors. Up to 64 may be open at once, of which 8 run
    /// beside each other.
    pub fn submit(&mut self, op: Op, request: Option<&Json>) -> Pending<'h> {
        let request = request.map_or("", Json::as_text);
        let started = self.host.borrow_mut().submit(op, request.as_bytes());
        let mut p = Pending { host: self.host.clone(), op, handle: 0, failed: None, over: false };
        match started {
            Ok(handle) => p.handle = handle,
            Err(refused) => p.failed = Some(Error::of(op, refused)),
        }
        p
    }

    /// Waits until one of several ops has something to read, has ended or has failed,
    /// and returns the lowest index of such a one. Those that were read to their end
    /// do not count any more; None when none is left. After the timeout, if there is
    /// one, the error is DEADLINE; it is CANCELLED when the turn is called off.
    pub fn wait_any<'a>(
        &mut self,
        ops: impl IntoIterator<Item = &'a Pending<'h>>,
        timeout: Option<Duration>,
    ) -> Result<Option<usize>, Error>
    where
        'h: 'a,
    {
        let (mut handles, mut index) = (Vec::new(), Vec::new());
        for (i, p) in ops.into_iter().enumerate().filter(|(_, p)| !p.over) {
            if p.handle == 0 {
                return Ok(Some(i)); // not started, and the reader does not know yet
            }
            handles.push(p.handle);
            index.push(i);
        }
        if handles.is_empty() {
            return Ok(None);
        }
        let ready = self.host.borrow_mut().wait(&handles, milliseconds(timeout));
        ready.map(|i| Some(index[i])).map_err(|refused| Error::of("wait", refused))
    }

    /// Waits until each of several ops has something to read, has ended or has failed.
    /// The timeout is for all of them together.
    pub fn wait_all<'a>(
        &mut self,
        ops: impl IntoIterator<Item = &'a Pending<'h>>,
        timeout: Option<Duration>,
    ) -> Result<(), Error>
    where
        'h: 'a,
    {
        let end = timeout.and_then(|span| self.now().checked_add(span));
        let mut left: Vec<&Pending> = ops.into_iter().collect();
        loop {
            let rest = end.map(|end| end.duration_since(self.now()).unwrap_or_default());
            match self.wait_any(left.iter().copied(), rest)? {
                Some(i) => left.remove(i),
                None => return Ok(()),
            };
        }
    }
}

/// A timeout as the host takes it; a part of a millisecond counts as one.
fn milliseconds(timeout: Option<Duration>) -> i32 {
    timeout.map_or(-1, |span| i32::try_from((span.as_nanos() + 999_999) / 1_000_000).unwrap_or(i32::MAX))
}

impl Pending<'_> {
    /// Reads the next bytes and waits until there are some; 0 at the end. An error
    /// comes again at every call.
    pub fn read_some(&mut self, to: &mut [u8]) -> Result<usize, Error> {
        if self.handle != 0 {
            let got = self.host.borrow_mut().read(self.handle, to);
            match got {
                Ok(0) if to.is_empty() => return Ok(0),
                Ok(0) => {}
                Ok(n) => return Ok(n),
                Err(refused) => self.failed = Some(Error::of(self.op, refused)),
            }
        }
        self.close();
        self.failed.clone().map_or(Ok(0), Err)
    }

    /// Reads the rest of the answer.
    pub fn bytes(&mut self) -> Result<Vec<u8>, Error> {
        let mut all = Vec::new();
        let mut piece = [0; 4096];
        loop {
            match self.read_some(&mut piece)? {
                0 => return Ok(all),
                n => all.extend_from_slice(&piece[..n]),
            }
        }
    }

    /// Reads the rest of the answer, one JSON value.
    pub fn json(&mut self) -> Result<Json, Error> {
        match self.bytes()?.as_slice() {
            [] => Ok(Json::null()),
            body => answer_of(self.op, body),
        }
    }

    pub(crate) fn close(&mut self) {
        if self.handle != 0 {
            self.host.borrow_mut().close(self.handle);
            self.handle = 0;
        }
        self.over = true;
    }
}

/// The answer piece by piece, at most 16 KiB each. Where the op fails, the last item
/// is the error.
impl Iterator for Pending<'_> {
    type Item = Result<Vec<u8>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let mut piece = vec![0; 16 << 10];
        match self.read_some(&mut piece) {
            Ok(0) => None,
            Ok(n) => {
                piece.truncate(n);
                Some(Ok(piece))
            }
            Err(e) => Some(Err(e)),
        }
    }
}

impl io::Read for Pending<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.read_some(to).map_err(|e| io::Error::new(io::ErrorKind::Other, e))
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;
    use crate::testing::{run, Input, Outcome, Stream};
    use crate::{Agent, Code, Emitted};

    /// Makes an agent of a function.
    struct Does(fn(&mut Turn) -> Result<(), Error>);

    impl Agent for Does {
        fn turn(&self, t: &mut Turn) -> Result<(), Error> {
            (self.0)(t)
        }
    }

    fn stream(seconds: u64, chunks: &[&str], error: Option<Code>) -> Option<Stream> {
        let error = error.map(|code| Error::new(code, "scripted"));
        Some(Stream { after: Duration::from_secs(seconds), chunks: chunks.iter().map(|c| c.to_string()).collect(), error })
    }

    fn script(_: Op, request: &Json) -> Option<Stream> {
        match request.as_str().as_str() {
            "slow" => stream(3, &["\"slow\""], None),
            "fast" => stream(1, &["\"fa", "st\""], None),
            "late" => stream(2, &["{"], Some(Code::UPSTREAM)),
            "lines" => stream(0, &["one\ntw", "", "o\nthree"], None),
            "off" => stream(1, &[], Some(Code::CANCELLED)),
            "long" => stream(60, &[], None),
            _ => None,
        }
    }

    fn play(turn: fn(&mut Turn) -> Result<(), Error>) -> Outcome {
        let out = run(&Does(turn), Input { streams: Some(Box::new(script)), ..Input::of("") });
        assert_eq!(out.error, None);
        out
    }

    fn ask<'h>(t: &mut Turn<'h>, name: &str) -> Pending<'h> {
        t.submit(Op::HTTP_FETCH, Some(&Json::from(name)))
    }

    #[test]
    fn ops_beside_each_other() {
        let out = play(|t| {
            let mut asks: Vec<_> = ["slow", "fast", "late", "unknown"].iter().map(|name| ask(t, name)).collect();
            let mut order = Vec::new();
            while let Some(i) = t.wait_any(&asks, None)? {
                let answer = asks[i].json();
                order.push(answer.map_or_else(|e| e.code.to_string(), |v| v.as_str()));
            }
            assert_eq!(order, ["INVALID", "fast", "UPSTREAM", "slow"]);
            Ok(())
        });
        assert!(out.calls[0].submitted && !out.calls[0].closed);
        assert_eq!(out.calls[2].refused.as_ref().map(|e| e.code), Some(Code::UPSTREAM));
    }

    #[test]
    fn timeouts() {
        let out = play(|t| {
            let (slow, mut fast) = (ask(t, "slow"), ask(t, "fast"));
            let short = t.wait_any([&slow, &fast], Some(Duration::from_micros(999_999)));
            assert_eq!(short, Ok(Some(1)), "a part of a millisecond counts as one");
            let all = t.wait_all([&slow, &fast], Some(Duration::from_secs(1))).unwrap_err();
            assert_eq!((all.code, all.op.as_str()), (Code::DEADLINE, "wait"));
            t.wait_all([&slow, &fast], None)?;
            assert_eq!((&mut fast).count(), 2);
            assert_eq!(t.wait_any([&fast], None), Ok(None));
            assert!(fast.next().is_none());
            t.wait_all([], Some(Duration::ZERO))
        });
        assert!(out.calls[0].closed && !out.calls[1].closed);
    }

    #[test]
    fn streams() {
        let out = play(|t| {
            let lines: Vec<_> = BufReader::new(ask(t, "lines")).lines().map(Result::unwrap).collect();
            assert_eq!(lines, ["one", "two", "three"]);
            let mut late = ask(t, "late");
            assert_eq!(late.next(), Some(Ok(b"{".to_vec())));
            assert_eq!(late.next().map(|e| e.unwrap_err().code), Some(Code::UPSTREAM));
            assert_eq!(late.next(), None);
            assert_eq!(late.read_some(&mut [0]).unwrap_err().code, Code::UPSTREAM, "again");
            let mut open: Vec<_> = (0..65).map(|_| ask(t, "long")).collect();
            assert_eq!(t.wait_any(&open, Some(Duration::ZERO)), Ok(Some(64)));
            assert_eq!(open.pop().unwrap().bytes().unwrap_err().code, Code::LIMIT);
            Ok(())
        });
        assert!(!out.calls[0].closed && !out.calls[1].closed && out.calls[2].closed);
    }

    #[test]
    fn being_called_off() {
        let out = play(|t| {
            let (off, long, mut fast) = (ask(t, "off"), ask(t, "long"), ask(t, "fast"));
            assert_eq!(t.wait_any([&off, &long], None).unwrap_err().code, Code::CANCELLED);
            assert_eq!(fast.next(), Some(Ok(b"\"fa".to_vec())), "what has come");
            for mut p in [off, long, ask(t, "slow")] {
                assert_eq!(p.json().unwrap_err().code, Code::CANCELLED);
            }
            assert_eq!(t.emit_note("x").unwrap_err().code, Code::CANCELLED);
            t.log("still here");
            t.set_state(Json::from("saved"));
            Ok(())
        });
        assert_eq!((out.state.as_str().as_str(), out.logs.len(), out.emits.len()), ("saved", 1, 0));
    }

    #[test]
    fn emits() {
        let answer = |op, request: &Json| {
            (op == Op::EMIT && request.get_str("chunk") == "busy").then(|| Json::parse("{\"status\":\"busy\"}"))
        };
        let agent = Does(|t| {
            assert_eq!(t.emit_chunk("a"), Ok(Emitted::Ok));
            assert_eq!(t.emit_chunk("busy"), Ok(Emitted::Busy));
            t.emit_progress("half", 0.5)?;
            t.emit_progress("begun", -1.0)?;
            t.emit_note("n")?;
            t.call(Op::EMIT, None).map(drop)
        });
        let out = run(&agent, Input { answer: Some(Box::new(answer)), ..Input::of("") });
        assert_eq!(out.error.map(|e| e.code), Some(Code::INVALID));
        let shown: Vec<_> = out.emits.iter().map(|e| (e.kind, e.text.as_str(), e.fraction)).collect();
        assert_eq!(shown, [("chunk", "a", None), ("progress", "half", Some(0.5)), ("progress", "begun", None), ("note", "n", None)]);
    }
}
