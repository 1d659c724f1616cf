//! Tests of what outlasts a turn: values, timers, and what is asked of the world.

use std::time::Duration;

use crate::testing::{self, Input, Outcome, World};
use crate::{Agent, Code, Error, FetchRequest, FetchResponse, Json, Op, Scope, Turn};

struct Does<F>(F);

impl<F: Fn(&mut Turn) -> Result<(), Error>> Agent for Does<F> {
    fn turn(&self, t: &mut Turn) -> Result<(), Error> {
        (self.0)(t)
    }
}

fn play(world: &World, f: impl Fn(&mut Turn) -> Result<(), Error>) -> Outcome {
    testing::run(&Does(f), Input { world: world.clone(), ..Input::default() })
}

fn agents(world: &World, key: &str) -> Option<String> {
    world.value(Scope::Agent, "", "", key)
}

fn code<T>(r: Result<T, Error>) -> Code {
    r.map_or_else(|e| e.code, |_| Code(0))
}

#[test]
fn helpers_say_what_the_contract_wants() {
    let world = World::default().grant_kv(Scope::Instance).answer_http(|_| Ok(FetchResponse::default()));
    let out = play(&world, |t| {
        let mut kv = t.kv(Scope::Task);
        assert_eq!(kv.get("a")?, None);
        kv.put("a", "<\n>")?;
        kv.delete("a")?;
        kv.list("p", "q", 2)?;
        t.kv(Scope::Instance).cas("n", None, Some("1"))?;
        t.set_timer(Duration::from_secs(90), "x")?;
        assert_eq!(code(t.cancel_timer("t")), Code::NOT_FOUND);
        let headers = vec![("a".to_string(), "b".to_string())];
        t.fetch(&FetchRequest { method: "POST".into(), url: "http://a/".into(), headers, body: "<é>".into() })?;
        t.fetch(&FetchRequest { body: vec![0, 255], ..FetchRequest::get("http://a/") })?;
        t.secret_exists("k").map(drop)
    });
    assert_eq!(out.error, None);
    let said: Vec<String> = out.calls.iter().map(|c| format!("{} {}", c.op, c.request)).collect();
    let want = [
        r#"kv.get {"key":"a","scope":"task"}"#,
        r#"kv.put {"key":"a","value":"<\n>","scope":"task"}"#,
        r#"kv.delete {"key":"a","scope":"task"}"#,
        r#"kv.list {"prefix":"p","after":"q","limit":2,"scope":"task"}"#,
        r#"kv.cas {"key":"n","expect":null,"value":"1","scope":"instance"}"#,
        r#"timer.set {"after":90000,"body":"x"}"#,
        r#"timer.cancel {"id":"t"}"#,
        r#"http.fetch {"method":"POST","url":"http://a/","headers":{"a":"b"},"body":"<é>"}"#,
        r#"http.fetch {"method":"GET","url":"http://a/","body_base64":"AP8="}"#,
        r#"secret.exists {"name":"k"}"#,
    ];
    assert_eq!(said, want);
}

#[test]
fn values_are_committed() {
    let world = World::default().grant_kv(Scope::Agent);
    world.set_value(Scope::Agent, "", "", "old", "1");
    let out = play(&world, |t| {
        let mut kv = t.kv(Scope::Agent);
        assert!(kv.cas("cas", None, Some("1"))? && !kv.cas("cas", None, Some("2"))?);
        kv.put("new", "1")?;
        kv.delete("old")?;
        Err("no".into())
    });
    assert_eq!(out.error.map(|e| e.message), Some("no".into()));
    assert_eq!((agents(&world, "old"), agents(&world, "new")), (Some("1".into()), None));
    let out = play(&world, |t| {
        let mut kv = t.kv(Scope::Agent);
        kv.put("b", "2")?;
        kv.delete("old")?;
        assert_eq!((kv.get("b")?, kv.get("old")?), (Some("2".into()), None));
        assert_eq!(code(kv.cas("b", None, None)), Code::CONFLICT);
        assert!(kv.cas("cas", Some("1"), None)?);
        t.kv(Scope::Task).put("t", "")
    });
    assert_eq!(out.error, None);
    assert_eq!((agents(&world, "b"), agents(&world, "old"), agents(&world, "cas")), (Some("2".into()), None, None));
    assert_eq!(world.value(Scope::Task, "", "", "t"), Some("".into()));
    assert_eq!(world.value(Scope::Task, "", "other", "t"), None);
}

#[test]
fn keys_come_page_by_page() {
    let world = World::default().grant_kv(Scope::Agent);
    for i in 0..999 {
        world.set_value(Scope::Agent, "", "", &format!("a{i:03}"), "");
    }
    let out = play(&world, |t| {
        let mut kv = t.kv(Scope::Agent);
        assert_eq!(kv.keys("a")?.len(), 999);
        assert_eq!(kv.list("a", "a996", 1)?, (vec!["a997".into()], Some("a997".into())));
        assert_eq!(kv.list("", "a996", 0)?, (vec!["a997".into(), "a998".into()], None));
        t.kv(Scope::Instance).keys("").map(drop)
    });
    assert_eq!(out.error.map(|e| e.code), Some(Code::DENIED));
}

#[test]
fn the_world_has_the_hosts_limits() {
    let world = World::default().grant_kv(Scope::Task);
    let large = "x".repeat(64 << 10);
    for i in 0..63 {
        world.set_value(Scope::Task, "", "", &i.to_string(), &large);
    }
    let out = play(&world, |t| {
        let mut kv = t.kv(Scope::Task);
        let refused = [
            code(kv.put("", "")),
            code(kv.put(&"k".repeat(513), "")),
            code(kv.put("a", &format!("{large}x"))),
            code(kv.put("a", &large)),
            code(t.kv(Scope::Agent).get("a")),
            code(t.set_timer(Duration::ZERO, "")),
            code(t.set_timer(Duration::from_secs(31 * 86_400), "")),
            code(t.set_timer(Duration::from_secs(1), &large.repeat(5))),
            code(t.call(Op::KV_GET, Some(&Json::parse(r#"{"Key":"a"}"#)?))),
            code(t.call(Op::KV_GET, Some(&Json::parse(r#"{"key":"a","scope":"swarm"}"#)?))),
            code(t.call(Op::KV_PUT, Some(&Json::parse(r#"{"key":"a","scope":"task"}"#)?))),
            code(t.call(Op::KV_LIST, Some(&Json::parse(r#"{"limit":-1,"scope":"task"}"#)?))),
            code(t.call(Op::TIMER_SET, Some(&Json::parse(r#"{"after":"1s"}"#)?))),
            code(t.call(Op::KV_PUT, Some(&Json::object([("key", Json::from("x".repeat(2 << 20)))])))),
        ];
        let want = [1, 7, 7, 7, 2, 1, 1, 7, 1, 1, 1, 1, 1, 7].map(Code);
        assert_eq!(refused, want);
        Ok(())
    });
    assert_eq!(out.error, None);
    for i in 0..1000 {
        world.set_value(Scope::Task, "", "", &i.to_string(), "");
    }
    play(&world, |t| {
        let mut kv = t.kv(Scope::Task);
        assert_eq!([code(kv.put("999", "y")), code(kv.put("1000", "")), code(kv.delete("5")), code(kv.put("1000", ""))], [0, 7, 0, 0].map(Code));
        Ok(())
    });
}

#[test]
fn timers_fire() {
    let world = World::default();
    assert_eq!(world.fire(), None);
    let out = play(&world, |t| {
        t.set_timer(Duration::from_secs(3600), "late")?;
        t.set_timer(Duration::from_secs(60), "soon")?;
        let gone = t.set_timer(Duration::from_secs(1), "gone")?;
        t.cancel_timer(&gone)
    });
    assert_eq!((out.error, world.timers().len()), (None, 2));
    play(&world, |t| t.set_timer(Duration::from_secs(1), "never").and(Err("no".into())));
    let m = world.fire().unwrap();
    assert_eq!((m.body.as_str(), m.time.as_str(), m.from_timer()), ("soon", "2026-01-01T12:01:00.000000+00:00", true));
    let agent = Does(|t: &mut Turn| {
        assert!(t.message.from_timer());
        assert_eq!(t.wall_time()?, "2026-01-01T12:01:00.000000+00:00");
        t.task_complete("done")
    });
    let out = testing::run(&agent, Input { world: world.clone(), message: m, ..Default::default() });
    assert_eq!((out.error, world.fire()), (None, None));
    let out = play(&world, |t| {
        for _ in 0..15 {
            t.set_timer(Duration::from_secs(1), "")?;
        }
        assert_eq!(code(t.set_timer(Duration::from_secs(1), "")), Code::LIMIT);
        Ok(())
    });
    assert_eq!((out.error, world.timers().len()), (None, 16));
    assert!(world.fire().is_some());
}

#[test]
fn fetches() {
    let world = World::default().grant_secret("key").answer_http(|r| match r.url.as_str() {
        "http://a/off" => Err(Error::new(Code::UNAVAILABLE, "off")),
        "http://a/large" => Ok(FetchResponse { body: vec![b'x'; (8 << 20) + 1], ..Default::default() }),
        _ => Ok(FetchResponse { status: 404, headers: vec![("A-B".into(), r.method.clone())], body: r.body.clone() }),
    });
    let out = play(&world, |t| {
        for body in [&b""[..], b"\0\xff\"", "é\n".as_bytes()] {
            let page = t.fetch(&FetchRequest { body: body.into(), ..FetchRequest::get("http://a/") })?;
            assert_eq!((page.status, page.header("a-b"), page.body.as_slice()), (404, "GET", body));
        }
        let mut p = t.submit(Op::HTTP_FETCH, Some(&Json::from(&FetchRequest::get("https://a/"))));
        assert_eq!(FetchResponse::from(&p.json()?).text(), "");
        assert!(t.secret_exists("key")? && !t.secret_exists("other")?);
        let refused = ["http://a/off", "http://a/large", "a"].map(|url| code(t.fetch(&FetchRequest::get(url))));
        assert_eq!(refused, [Code::UNAVAILABLE, Code::LIMIT, Code::INVALID]);
        let twice = Json::parse(r#"{"method":"GET","url":"http://a","body":"a","body_base64":"AA=="}"#)?;
        assert_eq!(code(t.call(Op::HTTP_FETCH, Some(&twice))), Code::INVALID);
        assert_eq!(code(t.fetch(&FetchRequest { method: "get".into(), ..FetchRequest::get("http://a/") })), Code::INVALID);
        Ok(())
    });
    assert_eq!(out.error, None);
    play(&World::default(), |t| {
        assert_eq!(code(t.fetch(&FetchRequest::get("http://a/"))), Code::DENIED);
        Ok(())
    });
}

#[test]
fn times_are_those_of_the_calendar() {
    for (seconds, text) in [(0, "1970-01-01T00:00:00"), (951_827_696, "2000-02-29T12:34:56"), (1_798_761_599, "2026-12-31T23:59:59")] {
        assert_eq!(crate::world::timestamp(seconds * 1_000_000_000 + 7000), format!("{text}.000007+00:00"));
    }
}
