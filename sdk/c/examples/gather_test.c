#include "gather.c"
#include "skep_test.h"

/* web has pages that come late, never in time, and not at all. */
static skep_code web(int32_t op, skep_json request, skep_json *answer) {
  skep_text url = skep_str(request, "url");
  if (op != SKEP_OP_HTTP_FETCH) return SKEP_OK;
  if (skep_is(url, "no")) return SKEP_DENIED;
  *answer = SKEP("{\"status\":200,\"body\":\"hello\"}");
  skep_test_pieces(7);
  skep_test_after(skep_is(url, "slow") ? 2000 : 3600000);
  if (skep_is(url, "off")) {
    *answer = SKEP("");
    skep_test_after(1000);
    skep_test_fails(SKEP_CANCELLED);
  }
  return SKEP_OK;
}

int main(void) {
  skep_test_input in = {.body = SKEP("slow stuck no"), .answer = web};
  skep_test_outcome out = skep_test_turn(in);
  skep_test_equal(skep_test_mail(&out, 0, "finish_message"),
                  "slow: 200, 5 bytes\nstuck: no answer\nno: DENIED: refused by the test");
  skep_test_equal(skep_string(skep_test_emit(&out, 0, "progress.text")), "no");
  skep_test_equal(skep_test_emit(&out, 1, "progress.fraction"), "0.666666667");

  memset(lines, 0, sizeof lines);
  in.body = SKEP("slow off");
  out = skep_test_turn(in);
  skep_test_equal(skep_str(out.output, "code"), "CANCELLED");
  return skep_test_failures;
}
