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
    /// Reads the turn's clock, in nanoseconds since 1970.
    fn now(&mut self) -> u64;
    /// Moves the turn's clock.
    fn sleep(&mut self, nanoseconds: u64);
}
