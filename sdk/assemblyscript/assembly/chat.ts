import * as host from "./host";
import { Failure } from "./failure";
import { Json } from "./json";
import { Code, Op } from "./names";
import { Pending } from "./pending";
import { Tool } from "./turn";

/** A tool call that a model wants made. */
export class ChatCall {
  constructor(
    public id: string,
    public name: string,
    /** As the model wrote them: they may be no JSON. */
    public args: string,
  ) {}

  encode(): Json {
    return Json.object().put("id", this.id).put("name", this.name).put("arguments", this.args);
  }
}

/** One message of a conversation with a model. */
export class ChatMessage {
  /** Of an assistant's message. */
  toolCalls: ChatCall[] = [];
  /** Of a tool's: the call that it answers, and whether that failed. */
  toolCallId: string = "";
  error: bool = false;
  /** Of an assistant's: what its answer gave to be handed back. */
  carry: Json = Json.null();

  constructor(
    /** system, user, assistant or tool. */
    public role: string,
    public content: string,
  ) {}

  /** What a tool call gave. */
  static result(id: string, content: string, error: bool = false): ChatMessage {
    const m = new ChatMessage("tool", content);
    m.toolCallId = id;
    m.error = error;
    return m;
  }

  encode(): Json {
    let v = Json.object().put("role", this.role).put("content", this.content);
    if (this.toolCalls.length > 0) v = v.set("tool_calls", Json.array(this.toolCalls.map<Json>((c) => c.encode())));
    if (this.toolCallId != "") v = v.put("tool_call_id", this.toolCallId);
    if (this.error) v = v.set("error", Json.boolean(true));
    return this.carry.isNull ? v : v.set("carry", this.carry);
  }
}

/** One question to a model. encode().text is the request of Op.LLM_CHAT. */
export class ChatRequest {
  /** What the model may call. */
  tools: Tool[] = [];
  /** auto when empty, none, required, or the name of a tool. */
  toolChoice: string = "";
  /** A JSON Schema that the text must follow. */
  schema: Json = Json.null();
  /** Bounds the answer; 0 takes the model's bound. */
  maxTokens: i64 = 0;
  /** From 0 to 2; a negative one leaves it to the model. */
  temperature: f64 = -1;

  constructor(
    /** By its name in the operator's [models]. */
    public model: string,
    public messages: ChatMessage[],
  ) {}

  encode(): Json {
    let v = Json.object().put("model", this.model).set("messages", Json.array(this.messages.map<Json>((m) => m.encode())));
    if (this.tools.length > 0) v = v.set("tools", Json.array(this.tools.map<Json>((t) => t.encode())));
    if (this.toolChoice != "") v = v.put("tool_choice", this.toolChoice);
    if (!this.schema.isNull) v = v.set("response_schema", this.schema);
    if (this.maxTokens != 0) v = v.set("max_tokens", Json.integer(this.maxTokens));
    return this.temperature < 0 ? v : v.set("temperature", Json.number(this.temperature));
  }
}

/** A model's answer: text, tool calls, or both. */
export class ChatAnswer {
  text: string;
  /** What the model has thought aloud. */
  reasoning: string;
  toolCalls: ChatCall[];
  /** stop, tool_calls, length or filtered. */
  finish: string;
  inputTokens: i64;
  cachedTokens: i64;
  outputTokens: i64;
  reasoningTokens: i64;
  /** Millionths of a dollar, 0 without prices. */
  microUsd: i64;
  /** What goes back with the answer, null for nothing. */
  carry: Json;

  /** Decodes the answer of Op.LLM_CHAT. */
  constructor(v: Json) {
    const usage = v.get("usage");
    this.text = v.getString("text");
    this.reasoning = v.getString("reasoning");
    this.toolCalls = v.get("tool_calls").items()
      .map<ChatCall>((c) => new ChatCall(c.getString("id"), c.getString("name"), c.getString("arguments")));
    this.finish = v.getString("finish");
    this.inputTokens = usage.get("input_tokens").asInteger();
    this.cachedTokens = usage.get("cached_tokens").asInteger();
    this.outputTokens = usage.get("output_tokens").asInteger();
    this.reasoningTokens = usage.get("reasoning_tokens").asInteger();
    this.microUsd = usage.get("micro_usd").asInteger();
    this.carry = v.get("carry");
  }

  /** The message that repeats it, before what its tool calls gave. */
  message(): ChatMessage {
    const m = new ChatMessage("assistant", this.text);
    m.toolCalls = this.toolCalls;
    m.carry = this.carry;
    return m;
  }
}

/** An answer as it comes: while (s.next()) use(s.delta). */
export class ChatStream {
  /** The piece that next has found, of the text or of the reasoning. */
  delta: string = "";
  reasoning: string = "";
  /** All of it, once next is false; null when the op failed. */
  answer: ChatAnswer | null = null;
  /** Why the op failed, null otherwise. */
  failure: Failure | null = null;
  /** To wait for it, or to close it. */
  op: Pending;
  private bytes: u8[] = [];
  private text: string[] = [];
  private thoughts: string[] = [];

  constructor(request: ChatRequest) {
    this.op = new Pending(Op.LLM_CHAT, request.encode().text);
  }

  /** The next line, of which the last may have no end; null when the op failed. */
  private line(): string | null {
    let end = this.bytes.indexOf(0x0a);
    while (end < 0) {
      const piece = this.op.read();
      if (piece === null) break;
      const from = this.bytes.length;
      this.bytes.length = from + piece.byteLength;
      memory.copy(this.bytes.dataStart + from, changetype<usize>(piece), piece.byteLength);
      end = this.bytes.indexOf(0x0a, from);
    }
    if (this.op.failure !== null) return null;
    const size = end < 0 ? this.bytes.length : end;
    const line = String.UTF8.decodeUnsafe(this.bytes.dataStart, size);
    this.bytes = this.bytes.slice(min(size + 1, this.bytes.length));
    return line;
  }

  /** Waits for the next piece; false at the end, and when the op failed. */
  next(): bool {
    const line = this.line();
    let v: Json | null = null;
    if (line !== null) v = Json.parse(line);
    if (v === null) {
      this.failure = line === null ? this.op.failure : new Failure(Code.INTERNAL, "llm.chat: the answer breaks off");
      host.failure = this.failure;
      return false;
    }
    if (v.has("end")) {
      const answer = new ChatAnswer(v.get("end"));
      answer.text = this.text.join("");
      answer.reasoning = this.thoughts.join("");
      this.answer = answer;
      this.op.close();
      return false;
    }
    this.delta = v.getString("delta");
    this.reasoning = v.getString("reasoning");
    this.text.push(this.delta);
    this.thoughts.push(this.reasoning);
    return true;
  }
}
