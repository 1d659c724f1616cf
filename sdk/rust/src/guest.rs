//! What the exported functions do. [`module!`](crate::module) calls it.

use crate::{Agent, ActionCall, Code, Descriptor, Error, Host, Json, Turn};

const OK: i32 = 0;
const FAILED: i32 = 1;

/// Writes a call's output, or its error.
fn outcome(host: &mut dyn Host, result: Result<String, Error>) -> i32 {
    let written = result.and_then(|out| match out.len() {
        0 => Ok(()),
        n => host
            .output(out.as_bytes())
            .map_err(|code| Error::new(code, format!("the host refused an output of {n} bytes"))),
    });
    match written {
        Ok(()) => OK,
        Err(e) => {
            let _ = host.output(e.encode().as_text().as_bytes()); // nothing is left to tell
            FAILED
        }
    }
}

/// Runs one turn of an agent against a host.
pub fn drive(agent: &impl Agent, host: &mut dyn Host) -> i32 {
    let result = Turn::new(host).and_then(|mut t| agent.turn(&mut t).map(|()| t.result()));
    outcome(host, result)
}

/// Runs one call of an action against a host.
pub fn drive_action(agent: &impl Agent, host: &mut dyn Host) -> i32 {
    let result = Json::parse_bytes(&host.input())
        .map_err(|_| Error::new(Code::INVALID, "the action's input is no JSON"))
        .and_then(|input| agent.action(&mut ActionCall::new(host, &input)))
        .map(|answer| answer.to_string());
    outcome(host, result)
}

/// Writes a descriptor to a host.
pub fn drive_describe(d: &Descriptor, host: &mut dyn Host) -> i32 {
    outcome(host, Ok(d.encode().to_string()))
}

#[cfg(target_arch = "wasm32")]
pub use wasm::{action, describe, turn, warm};

#[cfg(target_arch = "wasm32")]
mod wasm {
    use super::*;
    use crate::{sys, Op};

    /// The host, as seen from inside a module.
    struct Guest {
        len: u32,
        answer: Vec<u8>, // reused by every call, as large as the largest answer
    }

    const FIRST_BUFFER: usize = 16 << 10;

    /// Lets a panic end the turn with its own words.
    fn guest(len: u32) -> Guest {
        std::panic::set_hook(Box::new(|info| {
            let text = info.to_string();
            unsafe { sys::abort(Code::INTERNAL.0, text.as_ptr(), text.len() as u32) }
        }));
        Guest { len, answer: Vec::new() }
    }

    pub fn turn(agent: &impl Agent, len: u32) -> i32 {
        drive(agent, &mut guest(len))
    }

    pub fn action(agent: &impl Agent, len: u32) -> i32 {
        drive_action(agent, &mut guest(len))
    }

    pub fn describe(d: &Descriptor) -> i32 {
        drive_describe(d, &mut guest(0))
    }

    pub fn warm(agent: &impl Agent) -> i32 {
        outcome(&mut guest(0), agent.warm().map(|()| String::new()))
    }

    impl Guest {
        fn call_once(&mut self, op: Op, request: &[u8]) -> i64 {
            if self.answer.is_empty() {
                self.answer.resize(FIRST_BUFFER, 0);
            }
            let (req, rsp) = (request, &mut self.answer);
            unsafe { sys::call(op.0, req.as_ptr(), req.len() as u32, rsp.as_mut_ptr(), rsp.len() as u32) }
        }

        /// Passes a result on, or says with the host's words why there is none.
        fn check(&mut self, r: i64) -> Result<i64, (Code, Vec<u8>)> {
            if r >= 0 {
                return Ok(r);
            }
            let n = self.call_once(Op::LAST_ERROR, &[]);
            let body = self.answer.get(..n as usize).unwrap_or_default();
            Err((Code(-r as i32), body.to_vec()))
        }

        /// Reads what did not fit behind what did.
        fn rest(&mut self, size: usize, handle: i32) -> Result<(), Code> {
            let mut have = self.answer.len();
            self.answer.resize(size, 0);
            let mut n = 1;
            while have < size && n > 0 {
                let to = &mut self.answer[have..];
                n = unsafe { sys::read(handle, to.as_mut_ptr(), to.len() as u32) };
                have += n.max(0) as usize;
            }
            unsafe { sys::close(handle) };
            match n {
                0 => Err(Code::INTERNAL),
                n if n < 0 => Err(Code(-n as i32)),
                _ => Ok(()),
            }
        }
    }

    impl Host for Guest {
        fn input(&mut self) -> Vec<u8> {
            let mut buf = vec![0; self.len as usize];
            let n = unsafe { sys::input_read(0, buf.as_mut_ptr(), self.len) };
            buf.truncate(n.max(0) as usize);
            buf
        }

        fn output(&mut self, data: &[u8]) -> Result<(), Code> {
            match unsafe { sys::output_write(data.as_ptr(), data.len() as u32) } {
                n if n < 0 => Err(Code(-n)),
                _ => Ok(()),
            }
        }

        fn call(&mut self, op: Op, request: &[u8]) -> Result<&[u8], (Code, Vec<u8>)> {
            let r = self.call_once(op, request);
            self.check(r)?;
            let (size, handle) = (r as u32 as usize, (r >> 32) as i32);
            if handle != 0 {
                self.rest(size, handle).map_err(|code| (code, Vec::new()))?;
            }
            Ok(&self.answer[..size])
        }

        fn submit(&mut self, op: Op, request: &[u8]) -> Result<i32, (Code, Vec<u8>)> {
            let r = unsafe { sys::submit(op.0, request.as_ptr(), request.len() as u32) };
            self.check(r).map(|handle| handle as i32)
        }

        fn wait(&mut self, handles: &[i32], timeout_ms: i32) -> Result<usize, (Code, Vec<u8>)> {
            let r = unsafe { sys::wait(handles.as_ptr(), handles.len() as u32, timeout_ms) };
            self.check(r.into()).map(|index| index as usize)
        }

        fn read(&mut self, handle: i32, to: &mut [u8]) -> Result<usize, (Code, Vec<u8>)> {
            let r = unsafe { sys::read(handle, to.as_mut_ptr(), to.len() as u32) };
            self.check(r).map(|n| n as usize)
        }

        fn close(&mut self, handle: i32) {
            unsafe { sys::close(handle) };
        }

        fn now(&mut self) -> u64 {
            let mut ns = 0;
            unsafe { sys::clock_time_get(0, 1, &mut ns) };
            ns
        }

        fn sleep(&mut self, nanoseconds: u64) {
            // userdata; tag 0, a clock; clock 1, monotonic; timeout; precision; relative
            let subscription = [0, 0, 1, nanoseconds, 0, 0];
            let (mut event, mut ready) = ([0u64; 4], 0);
            unsafe { sys::poll_oneoff(subscription.as_ptr(), event.as_mut_ptr(), 1, &mut ready) };
        }
    }
}
