//! Tests of actions, models, blobs and measures.

use crate::testing::{self, Input, Outcome, Stream, World};
use crate::visit::Visit;
use crate::{
    ActionCall, Agent, ChatCall, ChatMessage, ChatPiece, ChatRequest, ChatResponse, ChatUsage, Code, Error, Json, Op, Tool, Turn,
};

struct Does<F>(F);

impl<F: Fn(&mut Turn) -> Result<(), Error>> Agent for Does<F> {
    fn turn(&self, t: &mut Turn) -> Result<(), Error> {
        (self.0)(t)
    }

    fn action(&self, call: &mut ActionCall) -> Result<Json, Error> {
        let params = call.host().params.clone();
        call.host().blob_put(b"of an action")?;
        Ok(Json::array([params, call.args.clone()]))
    }
}

fn play(input: Input, f: impl Fn(&mut Turn) -> Result<(), Error>) -> Outcome {
    testing::run(&Does(f), input)
}

fn in_world(world: &World) -> Input {
    Input { world: world.clone(), ..Default::default() }
}

fn code<T>(r: Result<T, Error>) -> Code {
    r.map_or_else(|e| e.code, |_| Code(0))
}

fn question() -> ChatRequest {
    ChatRequest { model: "m".into(), messages: vec![ChatMessage::new("user", "x")], ..Default::default() }
}

fn answer() -> ChatResponse {
    ChatResponse {
        text: "Good day to you".into(),
        reasoning: "be kind".into(),
        tool_calls: vec![ChatCall { id: "1".into(), name: "wave".into(), arguments: "{\"hands\":2}".into() }],
        finish: "tool_calls".into(),
        usage: ChatUsage { input_tokens: 3, output_tokens: 4, micro_usd: 5, ..Default::default() },
        carry: Json::object([("a", Json::from(1))]),
    }
}

#[test]
fn helpers_say_what_the_contract_wants() {
    let all = ChatRequest {
        messages: vec![
            ChatMessage::new("system", "s"),
            ChatMessage::from(&answer()),
            ChatMessage::result("1", Ok("done")),
            ChatMessage::result("2", Err("no")),
        ],
        tools: vec![Tool { name: "wave".into(), ..Default::default() }],
        tool_choice: "required".into(),
        schema: Json::object([("type", Json::from("object"))]),
        max_tokens: 9,
        temperature: Some(0.25),
        ..question()
    };
    assert_eq!(ChatRequest::from(&Json::from(&all)), all);
    assert_eq!(ChatResponse::from(&Json::from(&answer())), answer());
    let out = play(Input::default(), |t| {
        code(t.action("a", Json::array([])));
        code(t.chat(&question()));
        code(t.chat(&all));
        t.count("n", 1.0, &[])?;
        t.gauge("g", -0.5, &[("a", "b")])?;
        let id = t.span("s", &[("a", "b")])?;
        t.end_span(id, "why", &[("c", "d")])?;
        assert_eq!(code(t.end_span(id, "", &[])), Code::NOT_FOUND);
        assert_eq!(code(t.span("", &[])), Code::INVALID);
        assert_eq!(code(t.count("n", -1.0, &[])), Code::INVALID);
        let address = t.blob_put(b"\0\xff")?;
        assert_eq!(t.blob_get(&address)?, b"\0\xff");
        code(t.blob_get("x"));
        Ok(())
    });
    let said: Vec<String> = out.calls.iter().map(|c| format!("{} {}", c.op, c.request)).collect();
    let want = [
        r#"action {"name":"a","args":[]}"#,
        r#"llm.chat {"model":"m","messages":[{"role":"user","content":"x"}]}"#,
        r#"llm.chat {"model":"m","messages":[{"role":"system","content":"s"},{"role":"assistant","content":"Good day to you","tool_calls":[{"id":"1","name":"wave","arguments":"{\"hands\":2}"}],"carry":{"a":1}},{"role":"tool","content":"done","tool_call_id":"1"},{"role":"tool","content":"no","tool_call_id":"2","error":true}],"tools":[{"name":"wave","description":"","parameters":null}],"tool_choice":"required","response_schema":{"type":"object"},"max_tokens":9,"temperature":0.25}"#,
        r#"metric {"name":"n","value":1}"#,
        r#"metric {"name":"g","value":-0.5,"kind":"gauge","labels":{"a":"b"}}"#,
        r#"span {"name":"s","attributes":{"a":"b"}}"#,
        r#"span {"id":1,"attributes":{"c":"d"},"error":"why"}"#,
        r#"span {"id":1}"#,
        r#"span {"name":""}"#,
        r#"metric {"name":"n","value":-1}"#,
        r#"blob.put {"data":"AP8="}"#,
        r#"blob.get {"sha256":"06eb7d6a69ee19e5fbdf749018d3d2abfa04bcbd1365db312eb86dc7169389b8"}"#,
        r#"blob.get {"sha256":"x"}"#,
    ];
    for (said, want) in said.iter().zip(want) {
        assert_eq!(said, want);
    }
    let refused: Vec<Code> = out.calls.iter().filter_map(|c| c.refused.as_ref().map(|e| e.code)).collect();
    let invalid = Code::INVALID;
    assert_eq!(refused, [Code::UNSUPPORTED, Code::DENIED, Code::DENIED, Code::NOT_FOUND, invalid, invalid, Code::NOT_FOUND]);
    assert_eq!((out.spans[0].error.as_str(), out.spans[0].attributes.len(), out.metrics.len()), ("why", 2, 2));
}

#[test]
fn answers_come_whole_and_in_pieces() {
    let world = World::default().answer_llm(|r| {
        assert_eq!(*r, question());
        Ok(answer())
    });
    let out = play(in_world(&world), |t| {
        assert_eq!(t.chat(&question())?, answer());
        let mut stream = t.chat_stream(&question());
        t.wait_any([stream.pending()], None)?;
        let pieces: Vec<ChatPiece> = (&mut stream).collect::<Result<_, _>>()?;
        let texts: Vec<String> = pieces.iter().map(|p| p.reasoning.clone() + &p.delta).collect();
        assert_eq!(texts, ["be ", "kind", "Good ", "day ", "to ", "you"]);
        assert_eq!(t.wait_any([stream.pending()], None)?, None);
        assert_eq!(stream.answer()?, answer());
        assert_eq!(t.chat_stream(&question()).answer()?, answer());
        drop(t.chat_stream(&question()));
        assert_eq!(code(t.chat(&ChatRequest { model: String::new(), ..question() })), Code::INVALID);
        assert_eq!(code(t.chat(&ChatRequest { messages: Vec::new(), ..question() })), Code::INVALID);
        Ok(())
    });
    assert_eq!(out.error, None);
    assert!(!out.calls[1].closed && !out.calls[2].closed && out.calls[3].closed);
}

#[test]
fn streams_that_fail() {
    let script = |chunks: &[&str], error: Option<Code>| -> Outcome {
        let chunks: Vec<String> = chunks.iter().map(|c| c.to_string()).collect();
        let stream = move |_: Op, _: &Json| {
            Some(Stream { chunks: chunks.clone(), error: error.map(|code| Error::new(code, "scripted")), ..Default::default() })
        };
        play(Input { streams: Some(Box::new(stream)), ..Default::default() }, |t| {
            let mut stream = t.chat_stream(&question());
            for piece in &mut stream {
                t.note(piece?.delta);
            }
            t.note(stream.answer()?.text);
            Ok(())
        })
    };
    let end = "{\"end\":{\"tool_calls\":[],\"finish\":\"stop\",\"usage\":{}}}";
    assert_eq!(script(&["{\"delta\":\"a\"}\n{\"del", "ta\":\"b\"}\n", end], None).notes, ["a", "b", "ab"]);
    for (chunks, error, want) in [
        (&["{\"delta\":\"a\"}\n"][..], Some(Code::UPSTREAM), Code::UPSTREAM),
        (&[], Some(Code::DENIED), Code::DENIED),
        (&["{\"delta\":\"a\"}\n"], None, Code::INTERNAL),
        (&[], None, Code::INTERNAL),
        (&["delta\n"], None, Code::INTERNAL),
        (&["{\"delta\":\"a\"}\n{\"en"], None, Code::INTERNAL),
    ] {
        assert_eq!(script(chunks, error).error.map(|e| e.code), Some(want), "{chunks:?}");
    }
}

#[test]
fn actions_are_answered_and_have_a_host() {
    let world = World::default().answer_action("price_of", |args| match args.get_str("item").as_str() {
        "tea" => Ok(Json::from(250)),
        _ => Err(Error::new(Code::UPSTREAM, "no price")),
    });
    let out = play(in_world(&world), |t| {
        let item = |name: &str| Json::object([("item", Json::from(name))]);
        assert_eq!(t.action("price_of", item("tea"))?, Json::from(250));
        assert_eq!(code(t.action("price_of", item("gold"))), Code::UPSTREAM);
        assert_eq!(code(t.action("other", item("tea"))), Code::UNSUPPORTED);
        Ok(())
    });
    assert_eq!(out.error, None);
    let input = Input { params: Json::from("p"), ..in_world(&world) };
    let told = testing::act_in(&Does(|_: &mut Turn| Ok(())), "x", Json::from(1), input).unwrap();
    assert_eq!(told.as_text(), "[\"p\",1]");
    assert_eq!(world.blob(&world.set_blob(b"of an action")).unwrap(), b"of an action");
}

#[test]
fn blobs_are_committed_and_have_limits() {
    let world = World::default();
    let address = world.set_blob(b"there");
    let out = play(in_world(&world), |t| {
        assert_eq!(t.blob_get(&address)?, b"there");
        assert_eq!(t.blob_put(b"")?.len(), 64);
        assert_eq!(code(t.call(Op::BLOB_PUT, None)), Code::INVALID);
        Err("gone".into())
    });
    assert_eq!(out.error.map(|e| e.message), Some("gone".into()));
    assert_eq!(world.blob(&world.set_blob(b"there")).unwrap(), b"there");
    let out = play(in_world(&world), |t| {
        (0..64u8).try_for_each(|i| t.blob_put(&[i]).map(drop))?;
        assert_eq!(t.blob_put(b"one more").unwrap_err().reason, "blobs");
        t.blob_get("none").map(drop)
    });
    assert_eq!(out.error.map(|e| e.code), Some(Code::NOT_FOUND));
    let mut visit = Visit::default();
    let data = |text: String| Json::object([("data", Json::from(text))]);
    assert_eq!(visit.blob_put(&data("AAAA".repeat(1_000_001))).unwrap_err().reason, "size");
    visit.blobs.push(("a".into(), vec![0; 16 << 20]));
    assert_eq!(visit.blob_put(&data("AAAA".into())).unwrap_err().reason, "bytes");
}

#[test]
fn numbers_have_nine_places() {
    for (n, text) in [
        (0.0, "0"),
        (1.0, "1"),
        (-2.5, "-2.5"),
        (2.0 / 3.0, "0.666666667"),
        (0.9999999999, "1"),
        (123456789.125, "123456789.125"),
        (1e21, "1e21"),
        (f64::NAN, "null"),
        (f64::INFINITY, "null"),
    ] {
        let said = Json::decimal(n);
        assert_eq!(said.as_f64(), if n.is_finite() { Json::parse(text).unwrap().as_f64() } else { 0.0 });
        if n != 1e21 {
            assert_eq!(said.as_text(), text);
        }
    }
}
