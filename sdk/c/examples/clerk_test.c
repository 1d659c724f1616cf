#include "clerk.c"
#include "skep_test.h"

/* model asks for a price first, and then answers with what it was told last. */
static skep_json model(skep_json request) {
  skep_json messages = skep_at(request, "messages"), last = {0};
  for (skep_each e = skep_over(messages); skep_next(&e);) last = e.value;
  if (skep_is(skep_str(last, "role"), "tool")) return skep_test_chat(SKEP_CAT(SKEP("It is "), skep_str(last, "content")), (skep_json){0});
  if (skep_is(skep_str(last, "content"), "hello")) return skep_test_chat(SKEP("Good day to you."), (skep_json){0});
  if (skep_is(skep_str(last, "content"), "odd"))
    return skep_test_chat((skep_text){0}, SKEP("[{\"id\":\"1\",\"name\":\"price_of\",\"arguments\":\"{tea\"}]"));
  return skep_test_chat((skep_text){0}, SKEP("[{\"id\":\"1\",\"name\":\"price_of\",\"arguments\":\"{\\\"item\\\":\\\"tea\\\"}\"}]"));
}

static skep_code host(int32_t op, skep_json request, skep_json *answer) {
  if (op == SKEP_OP_LLM_CHAT) *answer = model(request);
  if (op == SKEP_OP_ACTION && skep_is(skep_str(request, "args.item"), "tea")) *answer = SKEP("250");
  return SKEP_OK;
}

static skep_code nobody(int32_t op, skep_json request, skep_json *answer) {
  if (op == SKEP_OP_LLM_CHAT) *answer = model(request);
  return op == SKEP_OP_ACTION ? SKEP_UPSTREAM : SKEP_OK;
}

static skep_code endless(int32_t op, skep_json request, skep_json *answer) {
  (void)request;
  if (op == SKEP_OP_LLM_CHAT) *answer = skep_test_chat((skep_text){0}, SKEP("[{\"id\":\"1\",\"name\":\"x\",\"arguments\":\"{}\"}]"));
  return SKEP_OK;
}

int main(void) {
  skep_test_outcome out = skep_test_turn((skep_test_input){.body = SKEP("hello"), .answer = host});
  skep_test_equal(skep_test_mail(&out, 0, "finish_message"), "Good day to you.");
  skep_test_equal(skep_test_emit(&out, 3, "chunk"), "\"you.\"");
  out = skep_test_turn((skep_test_input){.body = SKEP("what is tea?"), .answer = host});
  skep_test_equal(skep_test_mail(&out, 0, "finish_message"), "It is 250");
  out = skep_test_turn((skep_test_input){.body = SKEP("odd"), .answer = host});
  skep_test_equal(skep_test_mail(&out, 0, "finish_message"), "It is the arguments are no JSON");
  out = skep_test_turn((skep_test_input){.body = SKEP("tea?"), .answer = nobody});
  skep_test_equal(skep_test_mail(&out, 0, "finish_message"), "It is refused by the test");
  out = skep_test_turn((skep_test_input){.body = SKEP("tea?"), .answer = endless});
  skep_test_equal(skep_str(out.output, "code"), "LIMIT");
  out = skep_test_turn((skep_test_input){.body = SKEP("tea?")});
  skep_test_equal(skep_str(out.output, "code"), "UNSUPPORTED");
  out = skep_test_action_in(skep__action, SKEP("advise"), SKEP("{\"question\":\"tea?\"}"), (skep_test_input){.answer = host});
  skep_test_equal(out.output, "\"It is 250\"");
  return skep_test_failures;
}
