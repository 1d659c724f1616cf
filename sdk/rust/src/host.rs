use crate::{Code, Op};

/// The host, as a turn sees it: the imports of a module, or the one that
/// [`testing`](crate::testing) pretends. Agents do not call it.
pub trait Host {
    /// The whole input of the call.
    fn input(&mut self) -> Vec<u8>;
    /// Appends to the output of the call.
    fn output(&mut self, data: &[u8]) -> Result<(), Code>;
    /// Runs an op. A refusal comes with the JSON body of the error.
    fn call(&mut self, op: Op, request: &[u8]) -> Result<&[u8], (Code, Vec<u8>)>;
    /// Starts an op: a handle, or why not.
    fn submit(&mut self, op: Op, request: &[u8]) -> Result<i32, (Code, Vec<u8>)>;
    /// Waits for the first of several handles, and gives its index.
    fn wait(&mut self, handles: &[i32], timeout_ms: i32) -> Result<usize, (Code, Vec<u8>)>;
    /// Reads the next bytes of an answer, 0 at the end.
    fn read(&mut self, handle: i32, to: &mut [u8]) -> Result<usize, (Code, Vec<u8>)>;
    /// Forgets a handle.
    fn close(&mut self, handle: i32);
    /// Reads the turn's clock, in nanoseconds since 1970.
    fn now(&mut self) -> u64;
    /// Moves the turn's clock.
    fn sleep(&mut self, nanoseconds: u64);
}
