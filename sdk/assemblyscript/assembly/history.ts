import { Json } from "./json";
import { Message } from "./message";

/** One line of the agent's history in this task. kind tells what is set. */
export class Entry {
  seq: i64;
  turn: i64;
  /** As 2026-03-01T09:30:00.000000+00:00. */
  time: string;
  /** in, call, result or note. */
  kind: string;
  /** Of in. */
  message: Message | null = null;
  /** Of call and result: the same id for a call and its result. */
  id: string = "";
  /** Of call. */
  name: string = "";
  /** Of call. */
  args: Json = Json.null();
  /** Of result. */
  ok: bool = false;
  /** Of result and note. */
  text: string = "";

  constructor(v: Json) {
    this.seq = v.get("seq").asInteger();
    this.turn = v.get("turn").asInteger();
    this.time = v.getString("time");
    this.kind = v.getString("kind");
    const what = v.get(this.kind == "in" ? "message" : this.kind);
    if (this.kind == "in") {
      this.message = new Message(what);
    } else if (this.kind == "note") {
      this.text = what.asString();
    } else {
      this.id = what.getString("id");
      this.name = what.getString("name");
      this.args = what.get("args");
      this.ok = what.get("ok").asBoolean();
      this.text = what.getString("text");
    }
  }
}

/** A page of the history. */
export class Page {
  constructor(
    public entries: Entry[],
    /** Where the next page begins, 0 at the end. */
    public next: i64,
  ) {}
}
