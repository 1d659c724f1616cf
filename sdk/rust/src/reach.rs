//! What a pretended host says to those who call actions, ask models, keep blobs and
//! measure.

use crate::testing::{Metric, Span};
use crate::visit::{because, Visit};
use crate::{base64, digest, ChatRequest, ChatResponse, Code, Error, Json};

/// How many bytes a blob, and the blobs of a turn, have at most; and how many there are.
const BLOB: usize = 3_000_000;
const BLOBS: (usize, usize) = (64, 16 << 20);

impl Visit {
    pub(crate) fn action(&self, request: &Json) -> Result<Json, Error> {
        let name = request.get_str("name");
        let action = self.world.0.borrow().actions.get(&name).cloned();
        match action {
            Some(action) => action(&request.get("args")),
            None => because(Code::UNSUPPORTED, "action", format!("there is no action {name:?}; call World::answer_action")),
        }
    }

    pub(crate) fn chat(&self, request: &Json) -> Result<Json, Error> {
        let ask = ChatRequest::from(request);
        let mind = self.world.0.borrow().mind.clone();
        match mind {
            _ if ask.model.is_empty() => because(Code::INVALID, "model", "model is missing".into()),
            _ if ask.messages.is_empty() => because(Code::INVALID, "messages", "messages are missing".into()),
            Some(mind) => mind(&ask).map(|answer| Json::from(&answer)),
            None => because(Code::DENIED, "grant", format!("the model {:?} is not granted; call World::answer_llm", ask.model)),
        }
    }

    pub(crate) fn blob_put(&mut self, request: &Json) -> Result<Json, Error> {
        if !request.get("data").is_string() {
            return because(Code::INVALID, "data", "data is missing; it must be base64".into());
        }
        let bytes = base64::decode(&request.get_str("data"));
        let staged = self.blobs.iter().map(|(_, b)| b.len()).sum::<usize>() + bytes.len();
        if bytes.len() > BLOB {
            return because(Code::LIMIT, "size", format!("a blob of {} bytes, at most {BLOB}", bytes.len()));
        }
        if self.blobs.len() == BLOBS.0 {
            return because(Code::LIMIT, "blobs", format!("a turn puts at most {} blobs", BLOBS.0));
        }
        if staged > BLOBS.1 {
            return because(Code::LIMIT, "bytes", format!("the turn's blobs would have {staged} bytes, at most {}", BLOBS.1));
        }
        let address = digest::sha256(&bytes);
        self.blobs.push((address.clone(), bytes));
        Ok(Json::object([("sha256", Json::from(address))]))
    }

    pub(crate) fn blob_get(&self, request: &Json) -> Result<Json, Error> {
        let address = request.get_str("sha256");
        let staged = self.blobs.iter().find(|(a, _)| *a == address).map(|(_, bytes)| bytes.clone());
        match staged.or_else(|| self.world.blob(&address)) {
            Some(bytes) => Ok(Json::object([("data", Json::from(base64::encode(&bytes)))])),
            None => because(Code::NOT_FOUND, "blob", format!("the tenant has no blob {address:?}")),
        }
    }
}

fn texts(v: &Json) -> Vec<(String, String)> {
    v.members().into_iter().map(|(name, value)| (name, value.as_str())).collect()
}

/// Records what a turn has measured.
pub(crate) fn metric(all: &mut Vec<Metric>, request: &Json) -> Result<Json, Error> {
    let gauge = request.get_str("kind") == "gauge";
    let value = request.get("value").as_f64();
    if request.get_str("name").is_empty() || request.get("value").is_null() || value < 0.0 && !gauge {
        return because(Code::INVALID, "metric", format!("{request}: a metric has a name, and a counter's value is not negative"));
    }
    all.push(Metric { name: request.get_str("name"), value, gauge, labels: texts(&request.get("labels")) });
    Json::parse("{}")
}

/// Records a span that begins or ends.
pub(crate) fn span(all: &mut Vec<Span>, request: &Json) -> Result<Json, Error> {
    let (id, name) = (request.get("id").as_i64(), request.get_str("name"));
    if id == 0 && name.is_empty() {
        return because(Code::INVALID, "span", "a span has a name, or an id".into());
    }
    if id == 0 {
        all.push(Span { name, attributes: texts(&request.get("attributes")), ..Default::default() });
        return Ok(Json::object([("id", Json::from(all.len() as i64))]));
    }
    match all.get_mut((id - 1) as usize).filter(|s| !s.ended) {
        Some(span) => {
            span.ended = true;
            span.error = request.get_str("error");
            span.attributes.extend(texts(&request.get("attributes")));
            Ok(Json::object([("id", Json::from(id))]))
        }
        None => because(Code::NOT_FOUND, "id", format!("no span {id} is open")),
    }
}

/// A model's answer as who submits the question reads it: word by word.
pub(crate) fn pieces(answer: &Json) -> Vec<String> {
    let mut whole = ChatResponse::from(answer);
    let mut lines = Vec::new();
    for (name, text) in [("reasoning", &whole.reasoning), ("delta", &whole.text)] {
        let words = text.split_inclusive(' ').map(|word| Json::object([(name, Json::from(word))]).to_string() + "\n");
        lines.extend(words);
    }
    whole.text.clear();
    whole.reasoning.clear();
    lines.push(Json::object([("end", Json::from(&whole))]).to_string() + "\n");
    lines
}
