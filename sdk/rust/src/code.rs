use std::fmt;

/// Why the host refuses a call: one of a closed set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub i32);

impl Code {
    /// Bad arguments.
    pub const INVALID: Code = Code(1);
    /// Not granted to this agent.
    pub const DENIED: Code = Code(2);
    /// No such thing.
    pub const NOT_FOUND: Code = Code(3);
    /// Try again later.
    pub const UNAVAILABLE: Code = Code(4);
    /// Out of time.
    pub const DEADLINE: Code = Code(5);
    /// The turn is called off. What it does in the next 250 ms still counts if it
    /// then ends well: it may save its state and return.
    pub const CANCELLED: Code = Code(6);
    /// A budget, size or rate is used up; the reason says which, for instance
    /// `host_calls` or `host_bytes`. The turn goes on.
    pub const LIMIT: Code = Code(7);
    /// Does not fit the present state.
    pub const CONFLICT: Code = Code(8);
    /// The other side answered with an error.
    pub const UPSTREAM: Code = Code(9);
    /// This host cannot do it.
    pub const UNSUPPORTED: Code = Code(10);
    /// A fault of the host or the agent.
    pub const INTERNAL: Code = Code(11);

    /// The code with a name, for instance DENIED.
    pub fn named(name: &str) -> Option<Code> {
        let at = NAMES.iter().position(|n| *n == name)?;
        Some(Code(at as i32))
    }
}

const NAMES: [&str; 12] = [
    "OK", "INVALID", "DENIED", "NOT_FOUND", "UNAVAILABLE", "DEADLINE", "CANCELLED", "LIMIT", "CONFLICT", "UPSTREAM",
    "UNSUPPORTED", "INTERNAL",
];

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match NAMES.get(self.0 as usize) {
            Some(name) => f.write_str(name),
            None => write!(f, "CODE_{}", self.0),
        }
    }
}
