//! An agent that asks a model, which looks prices up with the action price_of, and an
//! action, advise, that does the same for other agents.

use skep::{ActionCall, ActionInfo, Agent, ChatCall, ChatMessage, ChatRequest, Code, Descriptor, Error, Json, Request, Tool, Turn};

struct Clerk;

/// An object of one text, as a JSON Schema.
fn one_text(name: &str) -> Json {
    let member = Json::object([(name, Json::object([("type", Json::from("string"))]))]);
    Json::object([("type", Json::from("object")), ("properties", member)])
}

/// Makes a call that the model wants made. It may have written anything.
fn look_up(t: &mut Turn, call: &ChatCall) -> ChatMessage {
    let price = Json::parse(&call.arguments).and_then(|args| t.action(&call.name, args));
    match price {
        Ok(answer) => ChatMessage::result(&call.id, Ok(answer.as_text())),
        Err(e) => ChatMessage::result(&call.id, Err(&e.message)),
    }
}

/// Asks the model until it has no more calls to make.
fn advise(t: &mut Turn, question: &str) -> Result<String, Error> {
    let mut request = ChatRequest {
        model: "default".into(),
        messages: vec![ChatMessage::new("system", "You are a clerk. Look prices up."), ChatMessage::new("user", question)],
        tools: vec![Tool { name: "price_of".into(), description: "The price in cents.".into(), parameters: one_text("item") }],
        ..Default::default()
    };
    for _ in 0..8 {
        let mut stream = t.chat_stream(&request);
        for piece in &mut stream {
            t.emit_chunk(&piece?.delta)?;
        }
        let answer = stream.answer()?;
        if answer.tool_calls.is_empty() {
            return Ok(answer.text);
        }
        request.messages.push(ChatMessage::from(&answer));
        request.messages.extend(answer.tool_calls.iter().map(|call| look_up(t, call)));
    }
    Err(Error::new(Code::LIMIT, "the model does not come to an end"))
}

impl Agent for Clerk {
    fn turn(&self, t: &mut Turn) -> Result<(), Error> {
        let question = t.message.body.clone();
        let span = t.span("advise", &[])?;
        let answer = advise(t, &question)?;
        t.end_span(span, "", &[])?;
        t.count("questions", 1.0, &[])?;
        t.task_complete(&answer)
    }

    fn action(&self, call: &mut ActionCall) -> Result<Json, Error> {
        let question = call.args.get_str("question");
        advise(call.host(), &question).map(Json::from)
    }
}

fn descriptor() -> Descriptor {
    let advise = ActionInfo {
        name: "advise".into(),
        description: "Answers a customer's question.".into(),
        parameters: one_text("question"),
        ..Default::default()
    };
    let llm = Request {
        allow: "llm".into(),
        value: Json::array([Json::from("default")]),
        reason: "to understand what is asked".into(),
        optional: false,
    };
    Descriptor {
        description: "Answers customers.".into(),
        actions: vec![advise],
        requests: vec![llm],
        ..Descriptor::new("clerk", "1.0.0")
    }
}

skep::module!(Clerk, descriptor());

#[cfg(test)]
mod tests {
    use super::*;
    use skep::testing::{self, Input, World};
    use skep::{ChatResponse, ChatUsage};

    /// Asks for a price first, and then answers with what it was told last.
    fn model(request: &ChatRequest) -> Result<ChatResponse, Error> {
        let last = request.messages.last().unwrap();
        let call = |arguments: &str| vec![ChatCall { id: "1".into(), name: "price_of".into(), arguments: arguments.into() }];
        let (text, tool_calls) = match (last.role.as_str(), last.content.as_str()) {
            ("tool", content) => (format!("It is {content}"), Vec::new()),
            (_, "hello") => ("Good day to you.".into(), Vec::new()),
            (_, "odd") => (String::new(), call("{tea")),
            (_, "gold?") => (String::new(), call("{\"item\":\"gold\"}")),
            _ => (String::new(), call("{\"item\":\"tea\"}")),
        };
        Ok(ChatResponse { text, tool_calls, finish: "stop".into(), usage: ChatUsage::default(), ..Default::default() })
    }

    fn price(args: &Json) -> Result<Json, Error> {
        match args.get_str("item").as_str() {
            "tea" => Ok(Json::from(250)),
            _ => Err(Error::new(Code::UPSTREAM, "no price")),
        }
    }

    fn shop() -> World {
        World::default().answer_llm(model).answer_action("price_of", price)
    }

    #[test]
    fn answers() {
        for (question, answer) in [
            ("hello", "Good day to you."),
            ("what is tea?", "It is 250"),
            ("gold?", "It is no price"),
            ("odd", "It is this is no JSON"),
        ] {
            let out = testing::run(&Clerk, Input { world: shop(), ..Input::of(question) });
            assert_eq!(out.error, None, "{question}");
            assert_eq!(out.mail[0].finish, answer);
            assert_eq!(out.metrics[0].name, "questions");
            assert_eq!((out.spans[0].name.as_str(), out.spans[0].ended), ("advise", true));
        }
        let out = testing::run(&Clerk, Input { world: shop(), ..Input::of("hello") });
        let shown: Vec<&str> = out.emits.iter().map(|e| e.text.as_str()).collect();
        assert_eq!(shown, ["Good ", "day ", "to ", "you."]);
    }

    #[test]
    fn has_limits() {
        let endless = World::default().answer_llm(|_| {
            Ok(ChatResponse { tool_calls: vec![ChatCall::default()], ..Default::default() })
        });
        let out = testing::run(&Clerk, Input { world: endless, ..Input::of("tea?") });
        assert_eq!(out.error.map(|e| e.code), Some(Code::LIMIT));
        assert_eq!(testing::run(&Clerk, Input::of("tea?")).error.map(|e| e.code), Some(Code::DENIED));
    }

    #[test]
    fn advises() {
        let question = Json::object([("question", Json::from("tea?"))]);
        let asked = testing::act_in(&Clerk, "advise", question.clone(), Input { world: shop(), ..Default::default() });
        assert_eq!(asked.unwrap().as_str(), "It is 250");
        assert_eq!(testing::act(&Clerk, "advise", question).unwrap_err().code, Code::DENIED);
    }
}
