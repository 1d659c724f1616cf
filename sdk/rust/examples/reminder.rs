//! An agent that remembers and waits: "in 10m tea" says it after ten minutes, "list"
//! tells what is pending in all tasks.

use std::time::Duration;

use skep::{Agent, Descriptor, Error, Json, Request, Scope, Turn};

struct Reminder;

const PENDING: &str = "pending/";

impl Agent for Reminder {
    fn turn(&self, t: &mut Turn) -> Result<(), Error> {
        if t.message.from_timer() {
            let key = format!("{PENDING}{}", t.message.id);
            t.kv(Scope::Agent).delete(&key)?;
            return t.task_complete(&format!("It is time: {}", t.message.body));
        }
        let body = t.message.body.clone();
        let words: Vec<&str> = body.splitn(3, ' ').collect();
        match words[..] {
            ["list"] => list(t),
            ["in", time, what] => match minutes(time) {
                Some(after) => remind(t, after, what),
                None => t.task_complete(&format!("{time} is no time; write it as in 10m.")),
            },
            _ => t.task_complete("I know \"in 10m tea\" and \"list\"."),
        }
    }
}

/// Sets a timer. The turn ends, and the task waits without costing anything.
fn remind(t: &mut Turn, after: Duration, what: &str) -> Result<(), Error> {
    let id = t.set_timer(after, what)?;
    t.kv(Scope::Agent).put(&format!("{PENDING}{id}"), what)?;
    t.await_message("until it is time")
}

/// Tells what all tasks wait for.
fn list(t: &mut Turn) -> Result<(), Error> {
    let mut kv = t.kv(Scope::Agent);
    let mut texts = Vec::new();
    for key in kv.keys(PENDING)? {
        texts.extend(kv.get(&key)?);
    }
    t.task_complete(&format!("Pending: {}", texts.join(", ")))
}

fn minutes(time: &str) -> Option<Duration> {
    let n: u32 = time.strip_suffix('m')?.parse().ok()?;
    Some(Duration::from_secs(u64::from(n) * 60))
}

fn descriptor() -> Descriptor {
    let kv = Request {
        allow: "kv".into(),
        value: Json::from("agent"),
        reason: "to list what is pending in all tasks".into(),
        ..Default::default()
    };
    Descriptor { description: "Says things when it is time.".into(), requests: vec![kv], ..Descriptor::new("reminder", "1.0.0") }
}

skep::module!(Reminder, descriptor());

#[cfg(test)]
mod tests {
    use super::*;
    use skep::testing::{self, Input, World};
    use skep::{Code, Message};

    fn say(world: &World, message: Message) -> String {
        let out = testing::run(&Reminder, Input { world: world.clone(), message, ..Default::default() });
        assert_eq!(out.error, None);
        out.mail[0].finish.clone()
    }

    fn of(task: &str, body: &str) -> Message {
        Message { task: task.into(), body: body.into(), ..Default::default() }
    }

    #[test]
    fn reminds() {
        let world = World::default().grant_kv(Scope::Agent);
        assert_eq!(say(&world, of("tea", "in 10m drink tea")), "");
        assert_eq!(say(&world, of("other", "list")), "Pending: drink tea");
        assert_eq!(say(&world, world.fire().unwrap()), "It is time: drink tea");
        assert_eq!(say(&world, of("other", "list")), "Pending: ");
    }

    #[test]
    fn says_what_it_does_not_know() {
        let world = World::default();
        assert_eq!(say(&world, of("", "in time tea")), "time is no time; write it as in 10m.");
        assert_eq!(say(&world, of("", "hello")), "I know \"in 10m tea\" and \"list\".");
        let out = testing::run(&Reminder, Input::of("list"));
        assert_eq!(out.error.map(|e| e.code), Some(Code::DENIED));
    }
}
