// Questions to models and their answers, as the vectors have them.

import * as skep from "../assembly/index";

function calls(list: skep.Json): skep.ChatCall[] {
  return list.items().map<skep.ChatCall>((c) => new skep.ChatCall(c.getString("id"), c.getString("name"), c.getString("arguments")));
}

function message(v: skep.Json): skep.ChatMessage {
  const m = new skep.ChatMessage(v.getString("role"), v.getString("content"));
  m.toolCalls = calls(v.get("tool_calls"));
  m.toolCallId = v.getString("tool_call_id");
  m.error = v.get("error").asBoolean();
  m.carry = v.get("carry");
  return m;
}

/** The question that a command asks. */
export function question(args: skep.Json): skep.ChatRequest {
  const messages = args.get("messages").items().map<skep.ChatMessage>((v) => message(v));
  const r = new skep.ChatRequest(args.getString("model"), messages);
  r.tools = args.get("tools").items().map<skep.Tool>((v) => new skep.Tool(v));
  r.toolChoice = args.getString("tool_choice");
  r.schema = args.get("response_schema");
  r.maxTokens = args.get("max_tokens").asInteger();
  if (args.has("temperature")) r.temperature = args.get("temperature").asNumber();
  return r;
}

/** What a note says of an answer. */
export function answered(a: skep.ChatAnswer): skep.Json {
  return skep.Json.object()
    .put("text", a.text)
    .put("reasoning", a.reasoning)
    .set("tool_calls", skep.Json.array(a.toolCalls.map<skep.Json>((c) => c.encode())))
    .put("finish", a.finish)
    .set("input_tokens", skep.Json.integer(a.inputTokens))
    .set("cached_tokens", skep.Json.integer(a.cachedTokens))
    .set("output_tokens", skep.Json.integer(a.outputTokens))
    .set("reasoning_tokens", skep.Json.integer(a.reasoningTokens))
    .set("micro_usd", skep.Json.integer(a.microUsd))
    .set("carry", a.carry);
}
