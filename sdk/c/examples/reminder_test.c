#include "reminder.c"
#include "skep_test.h"

/* kept is the one value that the host of this test keeps. */
static skep_text kept;

static skep_code host(int32_t op, skep_json request, skep_json *answer) {
  skep_buf b = {0};
  skep_put_char(&b, '{');
  switch (op) {
    case SKEP_OP_TIMER_SET: *answer = SKEP("{\"id\":\"8d2f6b0e-6f0e-4a39-9f5e-0d2c6a1c7b11\"}"); return SKEP_OK;
    case SKEP_OP_KV_PUT: kept = skep_str(request, "value"); break;
    case SKEP_OP_KV_DELETE: kept.len = 0; break;
    case SKEP_OP_KV_GET: skep_member(&b, "value", kept); break;
    case SKEP_OP_KV_LIST: *answer = kept.len ? SKEP("{\"keys\":[\"pending/1\"]}") : SKEP("{\"keys\":[]}"); return SKEP_OK;
    default: return SKEP_OK;
  }
  skep_put_char(&b, '}');
  *answer = skep_written(&b);
  return SKEP_OK;
}

static void says(skep_test_input in, const char *finish) {
  in.answer = host;
  skep_test_outcome out = skep_test_turn(in);
  skep_test_equal(skep_test_mail(&out, 0, "finish_message"), finish);
}

int main(void) {
  skep_test_outcome out = skep_test_turn((skep_test_input){.body = SKEP("in 10m drink tea"), .answer = host});
  skep_test_equal(out.call[0].request, "{\"after\":600000,\"body\":\"drink tea\"}");
  skep_test_equal(out.call[1].request,
                  "{\"key\":\"pending/8d2f6b0e-6f0e-4a39-9f5e-0d2c6a1c7b11\",\"value\":\"drink tea\",\"scope\":\"agent\"}");
  skep_test_equal(skep_test_mail(&out, 0, "tool"), "await_message");
  says((skep_test_input){.body = SKEP("list")}, "Pending: drink tea");
  says((skep_test_input){.sender_type = SKEP("system"), .subject = SKEP("::timer::"), .body = SKEP("drink tea")},
       "It is time: drink tea");
  says((skep_test_input){.body = SKEP("list")}, "Pending:");
  says((skep_test_input){.body = SKEP("in 10 tea")}, "I know \"in 10m tea\" and \"list\".");
  says((skep_test_input){.body = SKEP("in ")}, "I know \"in 10m tea\" and \"list\".");
  return skep_test_failures;
}
