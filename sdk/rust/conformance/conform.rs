//! The conformance guest of the Rust SDK: spec/conformance/GUEST.md says what it
//! does.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use skep::{
    ActionCall, ActionInfo, Address, Agent, AgentInfo, ChatMessage, ChatRequest, ChatResponse, Code, Descriptor, Emitted, Entry,
    Error, Json, Kind, Op, Tool, Turn,
};

static TURNS: AtomicU32 = AtomicU32::new(0);
static WARMED: AtomicU32 = AtomicU32::new(0);

struct Conform;

skep::module!(Conform, descriptor());

fn descriptor() -> Descriptor {
    Descriptor {
        description: "Does what the message says, the same in every language.".into(),
        agents: vec![AgentInfo {
            name: "conform".into(),
            description: "Send it a command list.".into(),
            ..Default::default()
        }],
        actions: vec![
            action("echo", "Answers with what it was given."),
            action("run", "Answers with the notes of a command list."),
        ],
        ..Descriptor::new("conform", "1.0.0")
    }
}

fn action(name: &str, description: &str) -> ActionInfo {
    let parameters = Json::object(vec![("type", Json::from("object"))]);
    ActionInfo { name: name.into(), description: description.into(), parameters, ..Default::default() }
}

impl Agent for Conform {
    fn warm(&self) -> Result<(), Error> {
        WARMED.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn action(&self, call: &mut ActionCall) -> Result<Json, Error> {
        if call.name == "run" {
            let commands = call.args.get("commands");
            return Ok(Json::array(notes(call.host(), Some(commands))?.into_iter().map(Json::from)));
        }
        Ok(Json::object([("action", Json::from(&call.name)), ("args", call.args.clone())]))
    }

    fn turn(&self, t: &mut Turn) -> Result<(), Error> {
        TURNS.fetch_add(1, Ordering::Relaxed);
        let list = Json::parse(&t.message.body).ok();
        for note in notes(t, list)? {
            t.note(note);
        }
        Ok(())
    }
}

/// Runs a command list.
fn notes(t: &mut Turn, list: Option<Json>) -> Result<Vec<String>, Error> {
    let list = list.and_then(parse).ok_or_else(|| Error::new(Code::INVALID, "no command list"))?;
    list.iter().map(|(name, args)| run(t, name, args)).collect()
}

/// Takes the command list apart.
fn parse(list: Json) -> Option<Vec<(String, Json)>> {
    let list = Some(list).filter(Json::is_array)?;
    let pair = |v: &Json| match &v.items()[..] {
        [name, args] if name.is_string() && args.is_object() => Some((name.as_str(), args.clone())),
        _ => None,
    };
    list.items().iter().map(pair).collect()
}

/// What a note says of an error.
fn refusal(e: Error) -> String {
    let reason = if e.reason.is_empty() { "-" } else { &e.reason };
    format!("ERROR {} {} {reason} {}: {}", e.code, e.op, e.retry_after_ms, e.message)
}

/// A text, or why there is none.
fn text(result: Result<String, Error>) -> String {
    result.unwrap_or_else(refusal)
}

/// ok, or why not.
fn said(result: Result<(), Error>) -> String {
    text(result.map(|()| "ok".into()))
}

/// Does one command. Its error ends the turn.
fn run(t: &mut Turn, name: &str, args: &Json) -> Result<String, Error> {
    let code = Code(args.get("code").as_i64() as i32);
    let note = match name {
        "echo" => args.get_str("text"),
        "look" => look(t).to_string(),
        "params" => t.params.to_string(),
        "state" => t.state().to_string(),
        "set" => {
            t.set_state(args.get("value"));
            "ok".into()
        }
        "count" => format!("{} {}", TURNS.load(Ordering::Relaxed), WARMED.load(Ordering::Relaxed)),
        "must" => call(t, args)?,
        "fail" => return Err(Error::new(code, args.get_str("message"))),
        #[cfg(target_arch = "wasm32")]
        "abort" => raw::abort(code, &args.get_str("message")),
        _ => host(t, name, args),
    };
    Ok(note)
}

fn call(t: &mut Turn, args: &Json) -> Result<String, Error> {
    let request = args.members().into_iter().find(|(name, _)| name == "request").map(|(_, v)| v);
    t.call(Op(args.get("op").as_i64() as i32), request.as_ref()).map(|answer| answer.to_string())
}

/// Does the commands that ask the host for something.
fn host(t: &mut Turn, name: &str, args: &Json) -> String {
    match name {
        "call" => text(call(t, args)),
        "random" => text(t.random()),
        "wall" => text(t.wall_time()),
        "clock" => nanoseconds(t).to_string(),
        "sleep" => {
            let before = nanoseconds(t);
            t.sleep(Duration::from_millis(args.get("ms").as_i64() as u64));
            (nanoseconds(t) - before).to_string()
        }
        "log" => {
            t.log_at(&args.get_str("level"), &args.get_str("message"), &[]);
            "ok".into()
        }
        "tail" => {
            let count = t.history_count().to_string();
            lines(count, &t.history(), None)
        }
        "history" => {
            let page = t.history_after(args.get("after").as_i64(), args.get("limit").as_i64());
            text(page.map(|(entries, next)| lines(String::new(), &entries, Some(next))))
        }
        _ => asks(t, name, args),
    }
}

/// Does the commands that ask actions and models, and those that show something.
fn asks(t: &mut Turn, name: &str, args: &Json) -> String {
    let shows = args.get_str("text");
    match name {
        "action" => text(t.action(&args.get_str("name"), args.get("args")).map(|answer| answer.to_string())),
        "chat" => text(t.chat(&question(args)).map(|answer| answered(&answer))),
        "chat_stream" => chat_stream(t, &question(args)),
        "emit_progress" => emitted(t.emit_progress(&shows, fraction(&args.get("fraction")).unwrap_or(-1.0))),
        "emit_chunk" => emitted(t.emit_chunk(&shows)),
        "emit_note" => emitted(t.emit_note(&shows)),
        _ => keeps(t, name, args),
    }
}

/// Does the commands that measure, and those that keep bytes.
fn keeps(t: &mut Turn, name: &str, args: &Json) -> String {
    let called = args.get_str("name");
    let texts = |name| args.get(name).members().into_iter().map(|(n, v)| (n, v.as_str())).collect::<Vec<_>>();
    let list = texts(if name == "metric" { "labels" } else { "attributes" });
    let list: Vec<(&str, &str)> = list.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    match name {
        "metric" if args.get_str("kind") == "gauge" => said(t.gauge(&called, number(args), &list)),
        "metric" => said(t.count(&called, number(args), &list)),
        "span" => text(t.span(&called, &list).map(|id| id.to_string())),
        "end_span" => said(t.end_span(args.get("id").as_i64(), &args.get_str("error"), &list)),
        "blob_put" => text(t.blob_put(args.get_str("text").as_bytes())),
        "blob_get" => text(t.blob_get(&args.get_str("sha256")).map(|b| format!("{} {:08x}", b.len(), mix(SEED, &b)))),
        _ => mail(t, name, args),
    }
}

fn number(args: &Json) -> f64 {
    let v = args.get("value");
    let sign = if v.as_text().starts_with('-') { -1.0 } else { 1.0 };
    fraction(&v).unwrap_or_default() * sign
}

fn question(args: &Json) -> ChatRequest {
    ChatRequest {
        model: args.get_str("model"),
        messages: args.get("messages").items().iter().map(ChatMessage::from).collect(),
        tools: args.get("tools").items().iter().map(Tool::from).collect(),
        tool_choice: args.get_str("tool_choice"),
        schema: args.get("response_schema"),
        max_tokens: args.get("max_tokens").as_i64(),
        temperature: fraction(&args.get("temperature")),
    }
}

/// Reads a number from 0, which needs less code than any.
fn fraction(v: &Json) -> Option<f64> {
    let text = v.as_text();
    let places = text.find('.').map_or(0, |point| text.len() - point - 1);
    let digits = text.bytes().filter(u8::is_ascii_digit).fold(0, |n, c| n * 10 + u32::from(c - b'0'));
    let one = (0..places).fold(1.0, |one, _| one * 10.0);
    if v.is_null() { None } else { Some(f64::from(digits) / one) }
}

fn answered(a: &ChatResponse) -> String {
    let members = vec![
        ("text", Json::from(&a.text)),
        ("reasoning", Json::from(&a.reasoning)),
        ("tool_calls", Json::array(a.tool_calls.iter().map(Json::from))),
        ("finish", Json::from(&a.finish)),
        ("input_tokens", Json::from(a.usage.input_tokens)),
        ("cached_tokens", Json::from(a.usage.cached_tokens)),
        ("output_tokens", Json::from(a.usage.output_tokens)),
        ("reasoning_tokens", Json::from(a.usage.reasoning_tokens)),
        ("micro_usd", Json::from(a.usage.micro_usd)),
        ("carry", a.carry.clone()),
    ];
    Json::object(members).to_string()
}

fn chat_stream(t: &mut Turn, question: &ChatRequest) -> String {
    let mut stream = t.chat_stream(question);
    let mut parts = Vec::new();
    loop {
        match stream.next() {
            Some(Ok(piece)) if piece.reasoning.is_empty() => parts.push("delta ".to_string() + &piece.delta),
            Some(Ok(piece)) => parts.push("reasoning ".to_string() + &piece.reasoning),
            Some(Err(e)) => {
                parts.push(refusal(e));
                break;
            }
            None => {
                parts.push(text(stream.answer().map(|answer| answered(&answer))));
                break;
            }
        }
    }
    parts.join("; ")
}

fn emitted(status: Result<Emitted, Error>) -> String {
    text(status.map(|status| match status {
        Emitted::Ok => "ok".into(),
        Emitted::Busy => "busy".into(),
        Emitted::Closed => "closed".into(),
    }))
}

fn nanoseconds(t: &mut Turn) -> u64 {
    t.now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
}

/// Does the commands that are MAIL's tools.
fn mail(t: &mut Turn, name: &str, args: &Json) -> String {
    let (target, subject, body) = (args.get_str("target"), args.get_str("subject"), args.get_str("body"));
    let reason = args.get_str("reason");
    match name {
        "send_request" => said(t.send_request(&target, &subject, &body)),
        "ask" => text(t.ask(&target, &subject, &body).map(|id| if id.is_empty() { "-".into() } else { id })),
        "send_response" => said(t.send_response(&target, &subject, &body)),
        "send_interrupt" => said(t.send_interrupt(&target, &subject, &body)),
        "send_broadcast" => {
            let targets: Vec<String> = args.get("targets").items().iter().map(Json::as_str).collect();
            let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
            said(t.send_broadcast(&targets, &subject, &body))
        }
        "acknowledge_broadcast" => said(t.acknowledge_broadcast(&args.get_str("note"))),
        "ignore_broadcast" => said(t.ignore_broadcast(&reason)),
        "await_message" => said(t.await_message(&reason)),
        "task_complete" => said(t.task_complete(&args.get_str("finish_message"))),
        "help" => text(t.help(true, &["help"])),
        "tool" => text(t.tool(&args.get_str("name"), args.get("args")).map(|reply| {
            let id = if reply.id.is_empty() { "-" } else { &reply.id };
            format!("{id} {}", reply.text)
        })),
        _ => boundary(name, args).unwrap_or_else(|| format!("ERROR UNSUPPORTED {name} - 0: no such command")),
    }
}

fn look(t: &Turn) -> Json {
    let texts = |list: &[String]| Json::array(list.iter().map(Json::from));
    let address = |a: &Address| Json::from(format!("{}:{}", a.kind, a.name));
    let m = &t.message;
    Json::object([
        ("turn", Json::from(t.number)),
        ("priority", Json::from(t.priority)),
        ("task", Json::from(&t.task.id)),
        ("owner", Json::from(&t.task.owner)),
        ("contributors", texts(&t.task.contributors)),
        ("completed", Json::from(t.task.completed)),
        ("agent", Json::from(&t.agent.name)),
        ("swarm", Json::from(&t.agent.swarm)),
        ("instance", Json::from(&t.agent.instance)),
        ("targets", texts(&t.agent.comm_targets)),
        ("can_complete", Json::from(t.agent.can_complete)),
        ("tools", Json::array(t.tools.iter().map(|tool| Json::from(&tool.name)))),
        ("id", Json::from(&m.id)),
        ("type", Json::from(&m.kind)),
        ("ref", Json::from(&m.ref_id)),
        ("from", address(&m.sender)),
        ("to", Json::array(m.recipients.iter().map(address))),
        ("subject", Json::from(&m.subject)),
        ("body", Json::from(&m.body)),
        ("deadline_ms", Json::from(t.deadline_ms)),
        ("host_calls", Json::from(t.budget.host_calls)),
        ("output_bytes", Json::from(t.budget.output_bytes)),
        ("trace", Json::from(&t.trace)),
    ])
}

/// Entries of the history, behind a first word and before where they go on.
fn lines(first: String, entries: &[Entry], next: Option<i64>) -> String {
    let line = |e: &Entry| {
        let what = match &e.what {
            Kind::In(m) => format!("in {} {}", m.kind, m.subject),
            Kind::Call { name, args, .. } => format!("call {name} {args}"),
            Kind::Result { ok: true, text, .. } => format!("result ok {text}"),
            Kind::Result { text, .. } => format!("result error {text}"),
            Kind::Note(text) => format!("note {text}"),
        };
        format!("{} {} {what}", e.seq, e.turn)
    };
    let mut parts = Vec::new();
    if !first.is_empty() {
        parts.push(first);
    }
    parts.extend(entries.iter().map(line));
    parts.extend(next.map(|next| format!("next {next}")));
    parts.join("; ")
}

const SEED: u32 = 2_166_136_261;

fn mix(h: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(h, |h, b| (h ^ u32::from(*b)).wrapping_mul(16_777_619))
}

#[cfg(not(target_arch = "wasm32"))]
fn boundary(_: &str, _: &Json) -> Option<String> {
    None // there is none in a native build
}

#[cfg(target_arch = "wasm32")]
use raw::boundary;

/// The boundary itself.
#[cfg(target_arch = "wasm32")]
mod raw {
    use super::{mix, SEED};
    use skep::{sys, Code, Json};

    pub fn boundary(name: &str, args: &Json) -> Option<String> {
        match name {
            "input" => Some(input(number(args, "page"))),
            "short" => Some(short(args)),
            "submit" => Some(submit(args)),
            "race" => Some(race(args)),
            "stream" => Some(stream(args)),
            "drop" => Some(dropped(args)),
            "wait" => Some(wait()),
            "pointer" => Some(pointer()),
            _ => None,
        }
    }

    pub fn abort(code: Code, message: &str) -> String {
        unsafe { sys::abort(code.0, message.as_ptr(), message.len() as u32) };
        String::new() // not reached
    }

    fn number(args: &Json, name: &str) -> u32 {
        args.get(name).as_i64() as u32
    }

    fn input(page: u32) -> String {
        let (mut buf, mut off, mut h) = (vec![0; page as usize], 0, SEED);
        loop {
            let n = unsafe { sys::input_read(off, buf.as_mut_ptr(), page) };
            if n <= 0 {
                return format!("{off} {h:08x}");
            }
            h = mix(h, &buf[..n as usize]);
            off += n as u32;
        }
    }

    fn short(args: &Json) -> String {
        let (cap, page) = (number(args, "cap"), number(args, "page"));
        let (request, mut buf) = (args.get("request").to_string(), vec![0; cap as usize]);
        let op = number(args, "op") as i32;
        let r = unsafe { sys::call(op, request.as_ptr(), request.len() as u32, buf.as_mut_ptr(), cap) };
        let (length, handle) = (r as u32, (r >> 32) as i32);
        if r < 0 {
            return r.to_string();
        }
        if handle == 0 {
            return format!("{length} {:08x}", mix(SEED, &buf[..length as usize]));
        }
        let (mut h, mut reads) = (mix(SEED, &buf), 0);
        buf.resize(page as usize, 0);
        loop {
            let n = unsafe { sys::read(handle, buf.as_mut_ptr(), page) };
            if n <= 0 {
                break;
            }
            h = mix(h, &buf[..n as usize]);
            reads += 1;
        }
        let closed = unsafe { sys::close(handle) };
        let after = unsafe { sys::read(handle, buf.as_mut_ptr(), page) };
        format!("{length} {reads} {h:08x} {closed} {after}")
    }

    fn start(args: &Json, request: &Json) -> i32 {
        let text = request.as_text();
        unsafe { sys::submit(number(args, "op") as i32, text.as_ptr(), text.len() as u32) as i32 }
    }

    fn race(args: &Json) -> String {
        let handles: Vec<i32> = args.get("requests").items().iter().map(|v| start(args, v)).collect();
        let mut waiting = handles.clone();
        let mut numbers: Vec<usize> = (0..handles.len()).collect();
        let mut words = Vec::new();
        while !waiting.is_empty() {
            let ready = unsafe { sys::wait(waiting.as_ptr(), waiting.len() as u32, number(args, "timeout") as i32) };
            if ready >= 0 {
                waiting.remove(ready as usize);
                words.push(numbers.remove(ready as usize).to_string());
                continue;
            }
            words.push(ready.to_string());
            if -ready != Code::DEADLINE.0 {
                break;
            }
        }
        for h in handles {
            unsafe { sys::close(h) };
        }
        words.join(" ")
    }

    fn stream(args: &Json) -> String {
        let (handle, page) = (start(args, &args.get("request")), number(args, "page"));
        let (mut buf, mut h, mut words) = (vec![0; page as usize], SEED, Vec::new());
        loop {
            let n = unsafe { sys::read(handle, buf.as_mut_ptr(), page) };
            words.push(n.to_string());
            if n <= 0 {
                break;
            }
            h = mix(h, &buf[..n as usize]);
        }
        unsafe { sys::close(handle) };
        words.push(format!("{h:08x}"));
        words.join(" ")
    }

    fn dropped(args: &Json) -> String {
        let handle = start(args, &args.get("request"));
        unsafe { format!("{} {}", sys::close(handle), sys::read(handle, std::ptr::null_mut(), 0)) }
    }

    fn submit(args: &Json) -> String {
        let handles: Vec<i32> = args.get("requests").items().iter().map(|v| start(args, v)).collect();
        let mut waiting = handles.clone();
        while !waiting.is_empty() {
            let ready = unsafe { sys::wait(waiting.as_ptr(), waiting.len() as u32, -1) };
            if ready < 0 {
                return ready.to_string();
            }
            waiting.swap_remove(ready as usize);
        }
        let answers: Vec<String> = handles.into_iter().map(collect).collect();
        answers.join(" ")
    }

    /// Reads one answer to its end.
    fn collect(handle: i32) -> String {
        let (mut all, mut buf) = (Vec::new(), [0; 16]);
        loop {
            let n = unsafe { sys::read(handle, buf.as_mut_ptr(), buf.len() as u32) };
            if n <= 0 {
                unsafe { sys::close(handle) };
                return if n < 0 { n.to_string() } else { String::from_utf8_lossy(&all).into_owned() };
            }
            all.extend_from_slice(&buf[..n as usize]);
        }
    }

    fn wait() -> String {
        let (handle, mut buf) = (99, [0; 16]);
        unsafe {
            let none = sys::wait(&handle, 0, 0);
            let unknown = sys::wait(&handle, 1, 0);
            let read = sys::read(99, buf.as_mut_ptr(), 16);
            format!("{none} {unknown} {read} {}", sys::close(99))
        }
    }

    fn pointer() -> String {
        let wild = 4_294_967_280_usize as *mut u8;
        let mut words = Vec::new();
        unsafe {
            words.push(result(sys::input_read(0, wild, 32).into()));
            words.push(result(sys::output_write(wild, 32).into()));
            words.push(result(sys::call(1, wild, 32, std::ptr::null_mut(), 0)));
            words.push(result(sys::submit(1, wild, 32)));
        }
        words.join(" ")
    }

    /// A result and the reason of the last error.
    fn result(r: i64) -> String {
        let mut buf = vec![0; 1024];
        let n = unsafe { sys::call(0, std::ptr::null(), 0, buf.as_mut_ptr(), buf.len() as u32) };
        let why = Json::parse(&String::from_utf8_lossy(&buf[..n as usize])).unwrap_or_default();
        format!("{r} {}", why.get_str("reason"))
    }
}
