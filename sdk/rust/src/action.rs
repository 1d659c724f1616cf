use crate::json::Object;
use crate::{Error, Host, Json, Op, Turn};

/// One call of an action.
pub struct ActionCall<'h> {
    pub name: String,
    /// They fit the parameters of the descriptor: the host has checked them.
    pub args: Json,
    host: Turn<'h>,
}

impl<'h> ActionCall<'h> {
    pub(crate) fn new(host: &'h mut dyn Host, input: &Json) -> ActionCall<'h> {
        let host = Turn::of(host, Object::new().set("params", &input.get("params")).json());
        ActionCall { name: input.get_str("name"), args: input.get("args"), host }
    }

    /// What the action reaches, with the methods of a turn: ops as far as the operator
    /// grants them to the action, and its params. It has no message, no state and no
    /// history, and sends no mail.
    pub fn host(&mut self) -> &mut Turn<'h> {
        &mut self.host
    }
}

impl Turn<'_> {
    /// Calls an action of the operator's file. UNSUPPORTED is a name that was not given
    /// to this agent, INVALID args that do not fit, UPSTREAM an action that has failed;
    /// the turn goes on.
    pub fn action(&mut self, name: &str, args: Json) -> Result<Json, Error> {
        self.call(Op::ACTION, Some(&Object::new().text("name", name).set("args", &args).json()))
    }
}
