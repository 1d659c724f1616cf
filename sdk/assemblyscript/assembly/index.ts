// Write a skep agent in AssemblyScript: an agent is a class with a turn method,
// handed to run. The functions at the end are what the host calls; an agent's
// entry file exports them.

import * as host from "./host";
import { Code, Status } from "./names";
import { Descriptor } from "./descriptor";
import { Failure } from "./failure";
import { Json } from "./json";
import { Turn } from "./turn";

export { ABI, Code, Emitted, Op, Status } from "./names";
export { ChatAnswer, ChatCall, ChatMessage, ChatRequest, ChatStream } from "./chat";
export { ActionInfo, AgentInfo, Capability, Descriptor, Request } from "./descriptor";
export { Failure } from "./failure";
export { FetchRequest, FetchResponse } from "./fetch";
export { Entry, Page } from "./history";
export { Json } from "./json";
export { Keys, Kv, Scope } from "./kv";
export { Address, Message } from "./message";
export { Pending } from "./pending";
export { Budget, Identity, Reply, Task, Tool, Turn } from "./turn";

/** One call of an action. */
export class ActionCall {
  /** The JSON value to answer with. */
  answer: Json = Json.null();

  constructor(
    public name: string,
    /** They fit the parameters of the descriptor: the host has checked them. */
    public args: Json,
    /**
     * What the action reaches: ops as far as the operator grants them to it, and its
     * params. It has no message, no state and no history, and sends no mail.
     */
    public host: Turn,
  ) {}
}

/** Handles one message per call. */
export abstract class Agent {
  /**
   * Handles one message. A Failure, or a trap, discards everything the turn did,
   * and the host tells the sender.
   */
  abstract turn(t: Turn): Failure | null;

  /**
   * Prepares what is the same for every turn, before the host takes the image from
   * which all turns start. Nothing about a tenant, a task or the time is known then.
   */
  warm(): Failure | null {
    return null;
  }

  /** Answers one call of an action that the descriptor lists, by call.answer. */
  action(call: ActionCall): Failure | null {
    return new Failure(Code.UNSUPPORTED, "no action " + call.name);
  }
}

let descriptor: Descriptor | null = null;
let agent: Agent | null = null;

/** Registers the module's agent. Call it once, at the top of the entry file. */
export function run(d: Descriptor, a: Agent): void {
  descriptor = d;
  agent = a;
}

/** Writes a call's output, or why it failed. */
function outcome(failed: Failure | null, output: string): i32 {
  if (failed === null && output.length > 0) failed = host.output(output);
  if (failed === null) return Status.OK;
  host.output(failed.encode().text);
  return Status.ERROR;
}

export function skep_abi_v1(): void {}

export function skep_describe(): i32 {
  const d = descriptor;
  return d === null ? Status.NOT_IMPLEMENTED : outcome(null, d.encode().text);
}

export function skep_warm(): i32 {
  const a = agent;
  return a === null ? Status.NOT_IMPLEMENTED : outcome(a.warm(), "");
}

export function skep_turn(size: u32): i32 {
  const a = agent;
  if (a === null) return Status.NOT_IMPLEMENTED;
  const input = Json.parse(host.input(size));
  if (input === null) return outcome(new Failure(Code.INVALID, "the turn input is no JSON"), "");
  const t = new Turn(input);
  const failed = a.turn(t);
  return outcome(failed, failed === null ? t.result() : "");
}

export function skep_action(size: u32): i32 {
  const a = agent;
  if (a === null) return Status.NOT_IMPLEMENTED;
  const input = Json.parse(host.input(size));
  if (input === null) return outcome(new Failure(Code.INVALID, "the action's input is no JSON"), "");
  const reached = new Turn(Json.object().set("params", input.get("params")));
  const call = new ActionCall(input.getString("name"), input.get("args"), reached);
  const failed = a.action(call);
  return outcome(failed, call.answer.text);
}

/** Ends the turn with a message. */
export function giveUp(code: i32, message: string): void {
  host.giveUp(code, message);
}

/** What a throw, a failed assert or an index out of range becomes. */
export function abort(message: string | null, file: string | null, line: u32, column: u32): void {
  const text = message === null ? "abort" : message;
  const place = file === null ? "" : " (" + file + ":" + line.toString() + ":" + column.toString() + ")";
  host.giveUp(Code.INTERNAL, text + place);
  unreachable(); // the host does not return
}
