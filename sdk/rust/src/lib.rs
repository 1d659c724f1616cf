//! Write a skep agent in Rust: an agent is a type with a [`turn`](Agent::turn)
//! method, handed to [`module!`].
//!
//! ```
//! use skep::{Agent, Descriptor, Error, Turn};
//!
//! struct Greeter;
//!
//! impl Agent for Greeter {
//!     fn turn(&self, t: &mut Turn) -> Result<(), Error> {
//!         t.task_complete(&format!("Hello, {}!", t.message.body))
//!     }
//! }
//!
//! skep::module!(Greeter, Descriptor::new("greeter", "1.0.0"));
//! # fn main() {}
//! ```
//!
//! Build it with `cargo build --release --target wasm32-unknown-unknown`. Every
//! turn runs in a fresh copy of the module's memory: statics do not last. What
//! must last goes into the turn's state, see [`Turn::set_state`].

mod action;
mod base64;
mod blob;
mod chat;
mod code;
mod descriptor;
mod digest;
mod emit;
mod error;
mod fetch;
#[doc(hidden)]
pub mod guest;
mod history;
mod host;
mod json;
mod kv;
mod measure;
mod message;
mod op;
mod pending;
mod reach;
#[cfg(test)]
mod reach_test;
mod stream;
#[cfg(target_arch = "wasm32")]
pub mod sys;
pub mod testing;
mod timer;
mod tool;
mod turn;
mod visit;
#[cfg(test)]
mod visit_test;
mod world;

pub use action::ActionCall;
pub use chat::{ChatCall, ChatMessage, ChatPiece, ChatRequest, ChatResponse, ChatStream, ChatUsage};
pub use code::Code;
pub use descriptor::{ActionInfo, AgentInfo, Capability, Descriptor, Request};
pub use emit::Emitted;
pub use error::Error;
pub use fetch::{FetchRequest, FetchResponse};
pub use history::{Entry, Kind};
pub use host::Host;
pub use json::Json;
pub use kv::{Kv, Scope};
pub use message::{Address, Message, BROADCAST, BROADCAST_COMPLETE, INTERRUPT, REQUEST, RESPONSE};
pub use op::Op;
pub use pending::Pending;
pub use timer::SUBJECT_TIMER;
pub use tool::Reply;
pub use turn::{Budget, Identity, Task, Tool, Turn};

/// The version of the ABI this crate speaks.
pub const ABI: i64 = 1;

/// Handles one message per call.
pub trait Agent {
    /// Handles one message. An error, or a panic, discards everything the turn
    /// did, and the host tells the sender.
    fn turn(&self, t: &mut Turn) -> Result<(), Error>;

    /// Prepares what is the same for every turn (tables, templates) in statics,
    /// before the host takes the image from which all turns start. Nothing about
    /// a tenant, a task or the time is known then.
    fn warm(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Answers one call of an action that the descriptor lists.
    fn action(&self, call: &mut ActionCall) -> Result<Json, Error> {
        Err(Error::new(Code::UNSUPPORTED, format!("no action {:?}", call.name)))
    }
}

/// Makes an agent and its [`Descriptor`] a module: the functions that a host
/// calls. Use it once in a crate. Both are expressions; in a native build, which
/// is a test, they are checked and not used.
#[macro_export]
macro_rules! module {
    ($agent:expr, $descriptor:expr $(,)?) => {
        #[allow(dead_code)]
        fn skep_agent() -> impl $crate::Agent {
            $agent
        }

        #[allow(dead_code)]
        fn skep_descriptor() -> $crate::Descriptor {
            $descriptor
        }

        #[cfg(target_arch = "wasm32")]
        mod skep_exports {
            #[no_mangle]
            extern "C" fn skep_abi_v1() {}

            #[no_mangle]
            extern "C" fn skep_describe() -> i32 {
                $crate::guest::describe(&super::skep_descriptor())
            }

            #[no_mangle]
            extern "C" fn skep_warm() -> i32 {
                $crate::guest::warm(&super::skep_agent())
            }

            #[no_mangle]
            extern "C" fn skep_turn(len: u32) -> i32 {
                $crate::guest::turn(&super::skep_agent(), len)
            }

            #[no_mangle]
            extern "C" fn skep_action(len: u32) -> i32 {
                $crate::guest::action(&super::skep_agent(), len)
            }
        }
    };
}
