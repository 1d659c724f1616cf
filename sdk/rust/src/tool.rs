use crate::json::Object;
use crate::{Error, Json, Op, Turn};

/// The host's answer to a MAIL tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The id of the message the tool made, if it made one.
    pub id: String,
    /// The request_id of a request: the response to it has it, too.
    pub request_id: String,
    pub text: String,
}

/// MAIL's tools. After `await_message` or `task_complete` every further one of the
/// turn is refused with [`CONFLICT`](crate::Code::CONFLICT).
impl Turn<'_> {
    /// Calls a tool by name with the arguments its schema asks for.
    pub fn tool(&mut self, name: &str, args: Json) -> Result<Reply, Error> {
        let answer = self.call(Op::MAIL, Some(&Object::new().text("tool", name).set("args", &args).json()))?;
        Ok(Reply { id: answer.get_str("id"), request_id: answer.get_str("request_id"), text: answer.get_str("text") })
    }

    /// Asks another agent. The answer comes as a message of a later turn.
    pub fn send_request(&mut self, target: &str, subject: &str, body: &str) -> Result<(), Error> {
        self.letter("send_request", target, subject, body).map(drop)
    }

    /// Asks another agent and returns the request's id. The answer has it as
    /// `message.ref_id`, and so has the host's report that there will be none. A host
    /// that does not give it leaves it empty.
    pub fn ask(&mut self, target: &str, subject: &str, body: &str) -> Result<String, Error> {
        Ok(self.letter("send_request", target, subject, body)?.request_id)
    }

    /// Answers an agent.
    pub fn send_response(&mut self, target: &str, subject: &str, body: &str) -> Result<(), Error> {
        self.letter("send_response", target, subject, body).map(drop)
    }

    /// Writes to an agent ahead of everything that waits for it.
    pub fn send_interrupt(&mut self, target: &str, subject: &str, body: &str) -> Result<(), Error> {
        self.letter("send_interrupt", target, subject, body).map(drop)
    }

    fn letter(&mut self, tool: &str, target: &str, subject: &str, body: &str) -> Result<Reply, Error> {
        self.tool(tool, Object::new().text("target", target).text("subject", subject).text("body", body).json())
    }

    /// Writes to several agents, or with the target `all` to every local agent but
    /// this one.
    pub fn send_broadcast(&mut self, targets: &[&str], subject: &str, body: &str) -> Result<(), Error> {
        let mut args = Object::new();
        args.set("targets", &Json::array(targets.iter().map(|t| Json::from(*t)))).text("subject", subject).text("body", body);
        self.tool("send_broadcast", args.json()).map(drop)
    }

    /// Takes note of the broadcast in hand, with a remark that may be empty.
    pub fn acknowledge_broadcast(&mut self, note: &str) -> Result<(), Error> {
        self.remark("acknowledge_broadcast", "note", note)
    }

    /// Leaves the broadcast in hand, for a reason that may be empty.
    pub fn ignore_broadcast(&mut self, reason: &str) -> Result<(), Error> {
        self.remark("ignore_broadcast", "reason", reason)
    }

    /// Ends the agent's part until another message arrives, for a reason that may
    /// be empty. It is refused when nothing can arrive any more.
    pub fn await_message(&mut self, reason: &str) -> Result<(), Error> {
        self.remark("await_message", "reason", reason)
    }

    /// Answers the user and ends the task.
    pub fn task_complete(&mut self, finish: &str) -> Result<(), Error> {
        self.tool("task_complete", Object::new().text("finish_message", finish).json()).map(drop)
    }

    /// Returns the host's own words about MAIL and this agent: a summary, the help
    /// of single tools.
    pub fn help(&mut self, summary: bool, tools: &[&str]) -> Result<String, Error> {
        let mut args = Object::new();
        args.set("get_summary", &Json::from(summary)).set("get_identity", &Json::from(false));
        args.set("get_tool_help", &Json::array(tools.iter().map(|t| Json::from(*t)))).set("get_full_protocol", &Json::from(false));
        Ok(self.tool("help", args.json())?.text)
    }

    /// Calls a tool whose one argument may be left out.
    fn remark(&mut self, tool: &str, name: &str, text: &str) -> Result<(), Error> {
        let value = if text.is_empty() { Json::null() } else { Json::from(text) };
        self.tool(tool, Object::new().set(name, &value).json()).map(drop)
    }
}
