//! An agent that asks for several pages at once: it is sent their addresses, shows
//! how far it has come, and answers with what it got.

use std::time::Duration;

use skep::{Agent, Code, Descriptor, Error, FetchRequest, FetchResponse, Json, Op, Pending, Request, Turn};

struct Gather;

impl Agent for Gather {
    fn turn(&self, t: &mut Turn) -> Result<(), Error> {
        let body = t.message.body.clone();
        let urls: Vec<&str> = body.split_whitespace().collect();
        let get = |url: &&str| Json::from(&FetchRequest::get(url));
        let mut asks: Vec<Pending> = urls.iter().map(|url| t.submit(Op::HTTP_FETCH, Some(&get(url)))).collect();
        let mut lines = vec![String::from("no answer"); urls.len()];
        let mut done = 0;
        loop {
            let i = match t.wait_any(&asks, Some(Duration::from_secs(30))) {
                Ok(Some(i)) => i,
                Ok(None) => break, // all have been read
                Err(e) if e.code == Code::DEADLINE => break, // with what there is
                Err(e) => return Err(e),
            };
            lines[i] = line(&mut asks[i]);
            done += 1;
            if let Err(e) = t.emit_progress(urls[i], f64::from(done) / urls.len() as f64) {
                t.log(&format!("progress is not shown: {e}"));
            }
        }
        let report: Vec<String> = urls.iter().zip(&lines).map(|(url, line)| format!("{url}: {line}")).collect();
        t.task_complete(&report.join("\n"))
    }
}

/// Tells what became of one page.
fn line(p: &mut Pending) -> String {
    match p.json().map(|answer| FetchResponse::from(&answer)) {
        Ok(page) => format!("{}, {} bytes", page.status, page.body.len()),
        Err(e) => e.to_string(),
    }
}

fn descriptor() -> Descriptor {
    let http = Request {
        allow: "http".into(),
        value: Json::array([Json::from("https://example.com")]),
        reason: "to fetch the pages".into(),
        optional: true,
    };
    Descriptor {
        description: "Fetches several pages at once.".into(),
        requests: vec![http],
        ..Descriptor::new("gather", "1.0.0")
    }
}

skep::module!(Gather, descriptor());

#[cfg(test)]
mod tests {
    use super::*;
    use skep::testing::{self, Input, Outcome, Stream};

    /// Pages that come late, never in time, and not at all.
    fn web(op: Op, request: &Json) -> Option<Stream> {
        let (after, chunks, error) = match request.get_str("url").as_str() {
            _ if op != Op::HTTP_FETCH => return None,
            "slow" => (2, vec!["{\"status\":200,".to_string(), "\"body\":\"hello\"}".to_string()], None),
            "stuck" => (3600, Vec::new(), None),
            "off" => (1, Vec::new(), Some(Error::new(Code::CANCELLED, "called off"))),
            _ => (0, Vec::new(), Some(Error::new(Code::DENIED, "not granted"))),
        };
        Some(Stream { after: Duration::from_secs(after), chunks, error })
    }

    fn play(body: &str) -> Outcome {
        testing::run(&Gather, Input { streams: Some(Box::new(web)), ..Input::of(body) })
    }

    #[test]
    fn gathers() {
        let out = play("slow stuck no");
        assert_eq!(out.error, None);
        assert_eq!(out.mail[0].finish, "slow: 200, 5 bytes\nstuck: no answer\nno: DENIED: not granted");
        assert_eq!(out.emits.len(), 2);
        assert_eq!((out.emits[0].text.as_str(), out.emits[1].fraction), ("no", Some(0.666666667)));
    }

    #[test]
    fn is_called_off() {
        let out = play("slow off");
        assert_eq!(out.error.map(|e| e.code), Some(Code::CANCELLED));
        assert!(out.mail.is_empty());
    }
}
