/*
 * An agent that asks a model, which looks prices up with the action price_of, and an
 * action, advise, that does the same for other agents.
 */
#include "skep.h"

SKEP_DESCRIPTOR({
  "abi": 1, "name": "clerk", "version": "1.0.0",
  "description": "Answers customers.",
  "actions": [{
    "name": "advise", "description": "Answers a customer's question.",
    "parameters": {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]}
  }],
  "requests": [{"allow": "llm", "value": ["default"], "reason": "to understand what is asked"}]
})

/* look_up makes a call that the model wants made. */
static void look_up(skep_buf *messages, skep_json call) {
  skep_text id = skep_str(call, "id"), name = skep_str(call, "name");
  skep_json args = skep_parse(skep_str(call, "arguments")), answer; /* it may have written anything */
  if (!args.len) return skep_chat_result(messages, id, SKEP("the arguments are no JSON"), true);
  skep_code code = skep_call_action(name, args, &answer);
  skep_chat_result(messages, id, code ? skep_last_error().message : answer, code != SKEP_OK);
}

/* advise asks the model until it has no more calls to make. */
static skep_code advise(skep_text question, skep_text *text) {
  skep_chat_request r = {.model = SKEP("default")};
  skep_chat_tool(&r.tools, SKEP("price_of"), SKEP("The price of an item, in cents."),
                 SKEP("{\"type\":\"object\",\"properties\":{\"item\":{\"type\":\"string\"}}}"));
  skep_chat_say(&r.messages, SKEP("system"), SKEP("You are a clerk. Look prices up."));
  skep_chat_say(&r.messages, SKEP("user"), question);
  for (int rounds = 0; rounds < 8; rounds++) {
    skep_chat_stream s = skep_chat_submit(r);
    for (bool more = true; more;) {
      SKEP_TRY(skep_chat_next(&s, &more));
      if (more) SKEP_TRY(skep_emit_chunk(s.delta, NULL));
    }
    *text = s.answer.text;
    skep_each calls = skep_over(s.answer.tool_calls);
    if (!skep_next(&calls)) return SKEP_OK;
    skep_chat_repeat(&r.messages, &s.answer);
    do look_up(&r.messages, calls.value);
    while (skep_next(&calls));
  }
  return skep_fail(SKEP_LIMIT, SKEP("the model does not come to an end"));
}

static skep_code action(skep_action *a) {
  skep_text text;
  skep_buf b = {0};
  SKEP_TRY(advise(skep_str(a->args, "question"), &text));
  skep_put_string(&b, text);
  a->answer = skep_written(&b);
  return SKEP_OK;
}
SKEP_ACTION(action)

static skep_code turn(skep_turn *t) {
  skep_text text;
  int64_t span;
  SKEP_TRY(skep_span_begin(SKEP("advise"), (skep_json){0}, &span));
  SKEP_TRY(advise(t->body, &text));
  SKEP_TRY(skep_span_end(span, (skep_json){0}, (skep_text){0}));
  SKEP_TRY(skep_count(SKEP("questions"), 1, (skep_json){0}));
  return skep_task_complete(text);
}
SKEP_AGENT(turn)
