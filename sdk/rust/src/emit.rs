use crate::json::Object;
use crate::{Error, Json, Op, Turn};

/// What became of something a turn has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emitted {
    /// It is on its way to whoever follows the task.
    Ok,
    /// No reader keeps up: it is logged with the turn, and not shown now. Do not
    /// repeat it.
    Busy,
    /// The task has ended and nobody gets it any more.
    Closed,
}

/// What is shown at once to whoever follows the task.
impl Turn<'_> {
    /// Shows how far the turn has come: in words, at most 4 KiB, as a fraction from
    /// 0 to 1, or both. An empty text and a negative fraction are left out.
    pub fn emit_progress(&mut self, text: &str, fraction: f64) -> Result<Emitted, Error> {
        let mut o = Object::new();
        o.some("text", Json::from(text));
        if fraction >= 0.0 {
            o.set("fraction", &Json::decimal(fraction));
        }
        self.emit("progress", o.json())
    }

    /// Shows the next piece of a text, at most 16 KiB.
    pub fn emit_chunk(&mut self, text: &str) -> Result<Emitted, Error> {
        self.emit("chunk", Json::from(text))
    }

    /// Shows a line, at most 4 KiB. The history does not have it; for that there is
    /// [`note`](Turn::note).
    pub fn emit_note(&mut self, text: &str) -> Result<Emitted, Error> {
        self.emit("note", Json::from(text))
    }

    fn emit(&mut self, member: &str, what: Json) -> Result<Emitted, Error> {
        let answer = self.call(Op::EMIT, Some(&Object::new().set(member, &what).json()))?;
        Ok(match answer.get_str("status").as_str() {
            "closed" => Emitted::Closed,
            "busy" => Emitted::Busy,
            _ => Emitted::Ok,
        })
    }
}
