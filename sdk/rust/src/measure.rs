use crate::json::Object;
use crate::{Error, Json, Op, Turn};

type Texts<'a> = &'a [(&'a str, &'a str)];

fn texts(list: Texts) -> Json {
    Json::object(list.iter().map(|(name, value)| (name, Json::from(*value))))
}

/// What the operator measures.
impl Turn<'_> {
    /// Adds a value, 0 or more, to a counter of the operator's monitoring. Each set of
    /// labels, at most 8, is a series of its own. It counts when the turn ends, once. Too
    /// many series or calls are LIMIT.
    pub fn count(&mut self, name: &str, value: f64, labels: &[(&str, &str)]) -> Result<(), Error> {
        self.metric(name, value, "", labels)
    }

    /// Sets a value that goes up and down, else as [`count`](Turn::count).
    pub fn gauge(&mut self, name: &str, value: f64, labels: &[(&str, &str)]) -> Result<(), Error> {
        self.metric(name, value, "gauge", labels)
    }

    fn metric(&mut self, name: &str, value: f64, kind: &str, labels: Texts) -> Result<(), Error> {
        let mut o = Object::new();
        o.text("name", name).set("value", &Json::decimal(value)).some("kind", Json::from(kind)).some("labels", texts(labels));
        self.call(Op::METRIC, Some(&o.json())).map(drop)
    }

    /// Begins a part of the turn that the operator sees with the time it took, and returns
    /// its id. It lies in the one that began last and has not ended. What is open at the
    /// end of the turn ends with it.
    pub fn span(&mut self, name: &str, attributes: &[(&str, &str)]) -> Result<i64, Error> {
        let request = Object::new().text("name", name).some("attributes", texts(attributes)).json();
        Ok(self.call(Op::SPAN, Some(&request))?.get("id").as_i64())
    }

    /// Ends one, with attributes beside those it began with, and why what it covers has
    /// failed; an empty error says that it has not.
    pub fn end_span(&mut self, id: i64, error: &str, attributes: &[(&str, &str)]) -> Result<(), Error> {
        let mut o = Object::new();
        o.int("id", id).some("attributes", texts(attributes)).some("error", Json::from(error));
        self.call(Op::SPAN, Some(&o.json())).map(drop)
    }
}
