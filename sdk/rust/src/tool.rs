use crate::{Error, Json, Op, Turn};

/// The host's answer to a MAIL tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The id of the message the tool made, if it made one.
    pub id: String,
    pub text: String,
}

/// MAIL's tools. After `await_message` or `task_complete` every further one of the
/// turn is refused with [`CONFLICT`](crate::Code::CONFLICT).
impl Turn<'_> {
    /// Calls a tool by name with the arguments its schema asks for.
    pub fn tool(&mut self, name: &str, args: Json) -> Result<Reply, Error> {
        let request = Json::object([("tool", Json::from(name)), ("args", args)]);
        let answer = self.call(Op::MAIL, Some(&request))?;
        Ok(Reply { id: answer.get_str("id"), text: answer.get_str("text") })
    }

    /// Asks another agent. The answer comes as a message of a later turn.
    pub fn send_request(&mut self, target: &str, subject: &str, body: &str) -> Result<(), Error> {
        self.letter("send_request", target, subject, body)
    }

    /// Answers an agent.
    pub fn send_response(&mut self, target: &str, subject: &str, body: &str) -> Result<(), Error> {
        self.letter("send_response", target, subject, body)
    }

    /// Writes to an agent ahead of everything that waits for it.
    pub fn send_interrupt(&mut self, target: &str, subject: &str, body: &str) -> Result<(), Error> {
        self.letter("send_interrupt", target, subject, body)
    }

    fn letter(&mut self, tool: &str, target: &str, subject: &str, body: &str) -> Result<(), Error> {
        let args = [("target", Json::from(target)), ("subject", Json::from(subject)), ("body", Json::from(body))];
        self.tool(tool, Json::object(args)).map(drop)
    }

    /// Writes to several agents, or with the target `all` to every local agent but
    /// this one.
    pub fn send_broadcast(&mut self, targets: &[&str], subject: &str, body: &str) -> Result<(), Error> {
        let args = [
            ("targets", Json::array(targets.iter().map(|t| Json::from(*t)))),
            ("subject", Json::from(subject)),
            ("body", Json::from(body)),
        ];
        self.tool("send_broadcast", Json::object(args)).map(drop)
    }

    /// Takes note of the broadcast in hand, with a remark that may be empty.
    pub fn acknowledge_broadcast(&mut self, note: &str) -> Result<(), Error> {
        self.tool("acknowledge_broadcast", Json::object([("note", optional(note))])).map(drop)
    }

    /// Leaves the broadcast in hand, for a reason that may be empty.
    pub fn ignore_broadcast(&mut self, reason: &str) -> Result<(), Error> {
        self.tool("ignore_broadcast", Json::object([("reason", optional(reason))])).map(drop)
    }

    /// Ends the agent's part until another message arrives, for a reason that may
    /// be empty. It is refused when nothing can arrive any more.
    pub fn await_message(&mut self, reason: &str) -> Result<(), Error> {
        self.tool("await_message", Json::object([("reason", optional(reason))])).map(drop)
    }

    /// Answers the user and ends the task.
    pub fn task_complete(&mut self, finish: &str) -> Result<(), Error> {
        self.tool("task_complete", Json::object([("finish_message", Json::from(finish))])).map(drop)
    }

    /// Returns the host's own words about MAIL and this agent: a summary, the help
    /// of single tools.
    pub fn help(&mut self, summary: bool, tools: &[&str]) -> Result<String, Error> {
        let args = [
            ("get_summary", Json::from(summary)),
            ("get_identity", Json::from(false)),
            ("get_tool_help", Json::array(tools.iter().map(|t| Json::from(*t)))),
            ("get_full_protocol", Json::from(false)),
        ];
        Ok(self.tool("help", Json::object(args))?.text)
    }
}

fn optional(text: &str) -> Json {
    if text.is_empty() {
        Json::null()
    } else {
        Json::from(text)
    }
}
