//! An agent with parameters and a state: it greets whoever writes, in the words
//! the swarm's file asks for, and counts how often it did so in this task.

use skep::{Agent, Descriptor, Error, Json, Turn};

struct Greeter;

impl Agent for Greeter {
    fn turn(&self, t: &mut Turn) -> Result<(), Error> {
        let mut greeting = t.params.get_str("greeting");
        if greeting.is_empty() {
            greeting = "Hello".into();
        }
        let greeted = t.state().get("greeted").as_i64() + 1;
        t.set_state(Json::object([("greeted", Json::from(greeted))]));
        t.task_complete(&format!("{greeting}, {}! (greeting {greeted} of this task)", t.message.body))
    }
}

skep::module!(
    Greeter,
    Descriptor { description: "Greets by name and counts its greetings.".into(), ..Descriptor::new("greeter", "1.0.0") }
);

#[cfg(test)]
mod tests {
    use super::*;
    use skep::{testing, Code};

    #[test]
    fn greets_and_counts() {
        let params = || Json::object([("greeting", Json::from("Grüezi"))]);
        let first = testing::run(&Greeter, testing::Input { params: params(), ..testing::Input::of("Ada \"the\" Countess") });
        assert_eq!(first.error, None);
        assert_eq!(first.mail[0].finish, "Grüezi, Ada \"the\" Countess! (greeting 1 of this task)");
        let second = testing::run(&Greeter, testing::Input { state: first.state, ..testing::Input::of("Ada") });
        assert_eq!(second.mail[0].finish, "Hello, Ada! (greeting 2 of this task)");
    }

    #[test]
    fn a_refusal_fails_the_turn() {
        let refuse: testing::Answer = Box::new(|_, _| Some(Err(Error::new(Code::DENIED, "no"))));
        let out = testing::run(&Greeter, testing::Input { answer: Some(refuse), ..testing::Input::of("Ada") });
        assert_eq!(out.error.map(|e| e.code), Some(Code::DENIED));
        assert!(out.state.is_null() && out.mail.is_empty());
    }
}
