/* What actions, models, blobs and measures ask of the host, and streams that fail. */
#include "skep.h"

static skep_code nothing(skep_turn *t) { return (void)t, SKEP_OK; }
static skep_code (*does)(skep_turn *) = nothing;
static skep_code agent(skep_turn *t) { return does(t); }
SKEP_AGENT(agent)

static skep_code told(skep_action *a) { return a->answer = a->params, SKEP_OK; }
SKEP_ACTION(told)

#include "skep_test.h"

static skep_text lines;

static skep_code host(int32_t op, skep_json request, skep_json *answer) {
  switch (op) {
    case SKEP_OP_ACTION: *answer = skep_is(skep_str(request, "name"), "none") ? SKEP("null") : SKEP("{\"a\":[1]}"); break;
    case SKEP_OP_LLM_CHAT:
      *answer = lines;
      if (skep_is(lines, "denied")) return SKEP_DENIED;
      if (skep_is(lines, "fails")) *answer = SKEP("{\"delta\":\"a\"}\n"), skep_test_fails(SKEP_UPSTREAM);
      break;
    case SKEP_OP_BLOB_PUT: *answer = SKEP("{\"sha256\":\"00ff\"}"); break;
    case SKEP_OP_BLOB_GET: *answer = SKEP("{\"data\":\"AP/7\"}"); break;
  }
  return SKEP_OK;
}

static skep_chat_request question(void) {
  skep_chat_request r = {.model = SKEP("m"), .max_tokens = 7, .temperature = &(const double){0}};
  skep_chat_say(&r.messages, SKEP("user"), SKEP("x"));
  return r;
}

static skep_code all(skep_turn *t) {
  skep_json answer;
  skep_text text;
  int64_t id;
  skep_chat_answer a;
  (void)t;
  SKEP_TRY(skep_call_action(SKEP("price_of"), (skep_json){0}, &answer));
  SKEP_TRY(skep_call_action(SKEP("none"), SKEP("{\"n\":1}"), NULL));
  skep_test_equal(answer, "{\"a\":[1]}");
  SKEP_TRY(skep_blob_put((skep_text){"\0\xff", 2}, &text));
  SKEP_TRY(skep_blob_get(text, &text));
  skep_test_equal(skep_equal(text, (skep_text){"\0\xff\xfb", 3}) ? SKEP("bytes") : text, "bytes");
  SKEP_TRY(skep_count(SKEP("n"), 0.000000001, SKEP("{\"a\":\"b\"}")));
  SKEP_TRY(skep_gauge(SKEP("g"), -2.5, (skep_json){0}));
  SKEP_TRY(skep_gauge(SKEP("g"), 1e30, (skep_json){0}));
  SKEP_TRY(skep_span_begin(SKEP("s"), (skep_json){0}, &id));
  SKEP_TRY(skep_span_end(id, SKEP("{\"a\":\"b\"}"), SKEP("why")));
  skep_test_equal(skep_code_name(skep_span_end(7, (skep_json){0}, (skep_text){0})), "NOT_FOUND");
  lines = SKEP("{\"text\":\"t\",\"tool_calls\":[{\"id\":\"1\",\"name\":\"n\",\"arguments\":\"\",\"later\":1}],\"carry\":{\"a\":1}}");
  skep_chat_request r = question();
  SKEP_TRY(skep_chat(r, &a));
  skep_chat_repeat(&r.messages, &a);
  skep_chat_result(&r.messages, SKEP("1"), SKEP("no"), true);
  return skep_chat(r, &a);
}

/* pieces tells how a stream goes on, and how it ends. */
static skep_code pieces(skep_turn *t) {
  skep_chat_stream s = skep_chat_submit(question());
  bool more = true;
  (void)t;
  while (more) {
    SKEP_TRY(skep_chat_next(&s, &more));
    skep_note(more ? SKEP_CAT(s.delta, s.reasoning) : SKEP_CAT(SKEP("all: "), s.answer.text, SKEP(", "), s.answer.reasoning));
  }
  return SKEP_OK;
}

static skep_test_outcome read(const char *text) {
  lines = skep_c(text);
  does = pieces;
  return skep_test_turn((skep_test_input){.answer = host});
}

int main(void) {
  static const char *const want[] = {
      "{\"name\":\"price_of\",\"args\":{}}",
      "{\"name\":\"none\",\"args\":{\"n\":1}}",
      "{\"data\":\"AP8=\"}",
      "{\"sha256\":\"00ff\"}",
      "{\"name\":\"n\",\"value\":0.000000001,\"labels\":{\"a\":\"b\"}}",
      "{\"name\":\"g\",\"value\":-2.5,\"kind\":\"gauge\"}",
      "{\"name\":\"g\",\"value\":1000000000000000000,\"kind\":\"gauge\"}",
      "{\"name\":\"s\"}",
      "{\"id\":1,\"attributes\":{\"a\":\"b\"},\"error\":\"why\"}",
      "{\"id\":7}",
      "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"max_tokens\":7,\"temperature\":0}",
      "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"assistant\",\"content\":\"t\",\"tool_calls\":[{\"id\":\"1\","
      "\"name\":\"n\",\"arguments\":\"\"}],\"carry\":{\"a\":1}},{\"role\":\"tool\",\"content\":\"no\",\"tool_call_id\":\"1\",\"error\":true}],"
      "\"max_tokens\":7,\"temperature\":0}",
  };
  does = all;
  skep_test_outcome out = skep_test_turn((skep_test_input){.answer = host});
  skep_test_equal(out.output, "");
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) skep_test_equal(out.call[i].request, want[i]);
  out = read("{\"reasoning\":\"r\"}\n{\"delta\":\"a\"}\n{\"delta\":\"b\"}\n{\"end\":{}}");
  skep_test_equal(out.notes, "[\"r\",\"a\",\"b\",\"all: ab, r\"]");
  skep_test_equal(skep_str(read("{\"delta\":\"a\"}\n").output, "message"), "llm.chat: the answer breaks off");
  skep_test_equal(skep_str(read("{\"delta\":\"a\"}\n{\"del").output, "code"), "INTERNAL");
  skep_test_equal(skep_str(read("").output, "code"), "INTERNAL");
  skep_test_equal(skep_str(read("denied").output, "code"), "DENIED");
  skep_test_equal(skep_str(read("fails").output, "code"), "UPSTREAM");
  out = skep_test_action_in(skep__action, SKEP("x"), SKEP("{}"), (skep_test_input){.params = SKEP("{\"a\":1}")});
  skep_test_equal(out.output, "{\"a\":1}");
  return skep_test_failures;
}
