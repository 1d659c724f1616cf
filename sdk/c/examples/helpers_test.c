/* What the typed ops ask of the host, and what they make of its answers. */
#include "skep.h"

static skep_code nothing(skep_turn *t) { return (void)t, SKEP_OK; }
static skep_code (*does)(skep_turn *) = nothing;
static skep_code agent(skep_turn *t) { return does(t); }
SKEP_AGENT(agent)

#include "skep_test.h"

static skep_code host(int32_t op, skep_json request, skep_json *answer) {
  switch (op) {
    case SKEP_OP_KV_GET: *answer = SKEP("{\"value\":\"a\\u00fc\"}"); break;
    case SKEP_OP_KV_PUT: case SKEP_OP_KV_DELETE: case SKEP_OP_TIMER_CANCEL: *answer = SKEP("{}"); break;
    case SKEP_OP_KV_LIST: *answer = SKEP("{\"keys\":[\"a\",\"b\"],\"next\":\"b\"}"); break;
    case SKEP_OP_KV_CAS: *answer = skep_is_null(skep_at(request, "value")) ? SKEP("{\"ok\":true}") : SKEP("{\"ok\":false}"); break;
    case SKEP_OP_TIMER_SET: *answer = SKEP("{\"id\":\"t\"}"); break;
    case SKEP_OP_SECRET_EXISTS: *answer = SKEP("{\"exists\":true}"); break;
    case SKEP_OP_HTTP_FETCH:
      *answer = skep_at(request, "body_base64").len
                    ? SKEP("{\"status\":404,\"headers\":{\"a\":\"b\"},\"body\":\"\",\"body_base64\":\"AP/7\"}")
                    : SKEP("{\"status\":200,\"headers\":{},\"body\":\"x\"}");
  }
  return SKEP_OK;
}

static skep_code all(skep_turn *t) {
  skep_text text, next, one = SKEP("1");
  skep_json keys;
  bool yes = false, no = true;
  skep_fetch_response page;
  SKEP_TRY(skep_kv_get(SKEP_SCOPE_TASK, SKEP("a\"b"), &text));
  skep_test_equal(text, "aü");
  SKEP_TRY(skep_kv_put(SKEP_SCOPE_AGENT, SKEP("a"), SKEP("")));
  SKEP_TRY(skep_kv_delete(SKEP_SCOPE_INSTANCE, SKEP("a")));
  SKEP_TRY(skep_kv_list(SKEP_SCOPE_AGENT, SKEP("p"), SKEP("q"), 2, &keys, &next));
  SKEP_TRY(skep_kv_cas(SKEP_SCOPE_AGENT, SKEP("n"), NULL, &one, &no));
  SKEP_TRY(skep_kv_cas(SKEP_SCOPE_AGENT, SKEP("n"), &one, NULL, &yes));
  skep_test_equal(keys, "[\"a\",\"b\"]");
  skep_test_equal(next, "b");
  SKEP_TRY(skep_timer_set(90000, SKEP("x"), &text));
  skep_test_equal(text, "t");
  SKEP_TRY(skep_timer_cancel(text));
  SKEP_TRY(skep_fetch((skep_fetch_request){.url = SKEP("http://a/")}, &page));
  skep_test_equal(page.body, "x");
  SKEP_TRY(skep_fetch((skep_fetch_request){SKEP("PUT"), SKEP("u"), SKEP("{\"a\":\"b\"}"), {"\0\xff\"x", 4}, true}, &page));
  skep_test_equal(page.headers, "{\"a\":\"b\"}");
  skep_test_equal(page.status == 404 && skep_equal(page.body, (skep_text){"\0\xff\xfb", 3}) ? SKEP("bytes") : page.body, "bytes");
  SKEP_TRY(skep_fetch((skep_fetch_request){.method = SKEP("POST"), .url = SKEP("u"), .body = SKEP("<é>")}, &page));
  SKEP_TRY(skep_secret_exists(SKEP("k"), &no));
  skep_test_equal(yes && no && !skep_from_timer(t) ? SKEP("yes") : SKEP("no"), "yes");
  return SKEP_OK;
}

static skep_code refused(skep_turn *t) {
  skep_text text;
  bool ok;
  skep_json keys;
  skep_fetch_response page;
  skep_code code = skep_kv_get(SKEP_SCOPE_AGENT, SKEP("a"), &text) | skep_kv_put(SKEP_SCOPE_AGENT, text, text) |
                   skep_kv_delete(SKEP_SCOPE_AGENT, SKEP("a")) | skep_kv_cas(SKEP_SCOPE_AGENT, SKEP("a"), NULL, NULL, &ok) |
                   skep_kv_list(SKEP_SCOPE_AGENT, SKEP(""), SKEP(""), 0, &keys, &text) | skep_timer_set(1, SKEP(""), NULL) |
                   skep_timer_cancel(SKEP("t")) | skep_secret_exists(SKEP("k"), &ok);
  skep_test_equal(skep_code_name(code), "UNSUPPORTED");
  skep_test_equal(skep_from_timer(t) ? SKEP("timer") : SKEP("none"), "timer");
  return skep_fetch((skep_fetch_request){.url = SKEP("u")}, &page);
}

static skep_code base64(skep_turn *t) {
  static const char *const pairs[][2] = {{"", ""}, {"a", "YQ=="}, {"ab", "YWI="}, {"abc", "YWJj"}, {"\xfb\xef\xff""d", "++//ZA=="}};
  (void)t;
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    skep_buf b = {0};
    skep_put_base64(&b, skep_c(pairs[i][0]));
    skep_test_equal(skep_written(&b), pairs[i][1]);
    skep_test_equal(skep_from_base64(skep_c(pairs[i][1])), pairs[i][0]);
  }
  return SKEP_OK;
}

int main(void) {
  static const char *const want[] = {
      "{\"key\":\"a\\\"b\",\"scope\":\"task\"}",
      "{\"key\":\"a\",\"value\":\"\",\"scope\":\"agent\"}",
      "{\"key\":\"a\",\"scope\":\"instance\"}",
      "{\"prefix\":\"p\",\"after\":\"q\",\"limit\":2,\"scope\":\"agent\"}",
      "{\"key\":\"n\",\"expect\":null,\"value\":\"1\",\"scope\":\"agent\"}",
      "{\"key\":\"n\",\"expect\":\"1\",\"value\":null,\"scope\":\"agent\"}",
      "{\"after\":90000,\"body\":\"x\"}",
      "{\"id\":\"t\"}",
      "{\"method\":\"GET\",\"url\":\"http://a/\"}",
      "{\"method\":\"PUT\",\"url\":\"u\",\"headers\":{\"a\":\"b\"},\"body_base64\":\"AP8ieA==\"}",
      "{\"method\":\"POST\",\"url\":\"u\",\"body\":\"<é>\"}",
      "{\"name\":\"k\"}",
  };
  does = all;
  skep_test_outcome out = skep_test_turn((skep_test_input){.answer = host});
  skep_test_equal(out.output, "");
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) skep_test_equal(out.call[i].request, want[i]);
  does = base64;
  skep_test_turn((skep_test_input){.answer = host});
  does = refused;
  out = skep_test_turn((skep_test_input){.sender_type = SKEP("system"), .subject = SKEP("::timer::")});
  skep_test_equal(skep_str(out.output, "code"), "UNSUPPORTED");
  return skep_test_failures;
}
