// An agent that asks a model, which looks prices up with the action price_of, and an
// action, advise, that does the same for other agents.

import * as skep from "../assembly/index";
export { skep_abi_v1, skep_action, skep_describe, skep_turn, skep_warm } from "../assembly/index";

const ROUNDS = 8;

/** An object of one text, as a JSON Schema. */
function oneText(name: string): skep.Json {
  const member = skep.Json.object().set(name, skep.Json.object().put("type", "string"));
  return skep.Json.object().put("type", "object").set("properties", member);
}

/** Makes a call that the model wants made. */
function lookUp(t: skep.Turn, call: skep.ChatCall): skep.ChatMessage {
  const args = skep.Json.parse(call.args); // it may have written anything
  if (args === null) return skep.ChatMessage.result(call.id, "the arguments are no JSON", true);
  const answer = t.action(call.name, args), failed = t.failure;
  if (answer !== null) return skep.ChatMessage.result(call.id, answer.text);
  return skep.ChatMessage.result(call.id, failed === null ? "" : failed.message, true);
}

/** Asks the model until it has no more calls to make; null when failure says why not. */
function advise(t: skep.Turn, question: string): string | null {
  const system = new skep.ChatMessage("system", "You are a clerk. Look prices up.");
  const request = new skep.ChatRequest("default", [system, new skep.ChatMessage("user", question)]);
  request.tools.push(skep.Tool.of("price_of", "The price in cents.", oneText("item")));
  for (let round = 0; round < ROUNDS; round++) {
    const stream = t.chatStream(request);
    while (stream.next()) {
      if (t.emitChunk(stream.delta) < 0) return null;
    }
    const answer = stream.answer;
    if (answer === null) return null;
    if (answer.toolCalls.length == 0) return answer.text;
    request.messages.push(answer.message());
    for (let i = 0; i < answer.toolCalls.length; i++) request.messages.push(lookUp(t, answer.toolCalls[i]));
  }
  return "I cannot tell.";
}

class Clerk extends skep.Agent {
  turn(t: skep.Turn): skep.Failure | null {
    const span = t.span("advise"), text = advise(t, t.message.body);
    if (text === null) return t.failure;
    let failed = t.endSpan(span);
    if (failed === null) failed = t.count("questions");
    return failed !== null ? failed : t.taskComplete(text);
  }

  action(call: skep.ActionCall): skep.Failure | null {
    const text = advise(call.host, call.args.getString("question"));
    if (text === null) return call.host.failure;
    call.answer = skep.Json.string(text);
    return null;
  }
}

const about = new skep.Descriptor("clerk", "1.0.0");
about.description = "Answers customers.";
about.actions.push(new skep.ActionInfo("advise", "Answers a customer's question.", oneText("question")));
const llm = new skep.Request("llm", "to understand what is asked");
llm.value = skep.Json.strings(["default"]);
about.requests.push(llm);
skep.run(about, new Clerk());
