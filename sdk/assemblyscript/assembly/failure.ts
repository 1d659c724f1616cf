import { Code } from "./names";
import { Json } from "./json";

/** A call the host refused or could not do, or why an agent gives up. */
export class Failure {
  /** The op that failed, for instance mail. */
  op: string = "";
  /** A short word for programs, for instance comm_targets. */
  reason: string = "";
  /** How long to wait before a retry makes sense, 0 if that is not known. */
  retryAfterMs: i64 = 0;

  /** An agent returns one to give up: code and message go to the host. */
  constructor(
    public code: i32,
    public message: string,
  ) {}

  /** Decodes the body of a failed op. */
  static fromHost(code: i32, body: string): Failure {
    const parsed = Json.parse(body);
    const v = parsed ? parsed : Json.null();
    const f = new Failure(code, v.getString("message"));
    if (f.message == "") f.message = "the host gave no message";
    f.op = v.getString("op");
    f.reason = v.getString("reason");
    f.retryAfterMs = v.get("retry_after_ms").asInteger();
    return f;
  }

  /** The form in which it goes to the host. */
  encode(): Json {
    let v = Json.object().put("code", Code.name(this.code));
    if (this.op != "") v = v.put("op", this.op);
    if (this.reason != "") v = v.put("reason", this.reason);
    if (this.retryAfterMs != 0) v = v.set("retry_after_ms", Json.integer(this.retryAfterMs));
    return v.put("message", this.message);
  }

  toString(): string {
    return Code.name(this.code) + ": " + this.message;
  }
}
