#include "prices.c"
#include "skep_test.h"

int main(void) {
  skep_test_outcome out = skep_test_turn((skep_test_input){.body = SKEP("tea")});
  skep_test_equal(skep_test_mail(&out, 0, "finish_message"), "250 cents");
  out = skep_test_turn((skep_test_input){.body = SKEP("gold")});
  skep_test_equal(skep_test_mail(&out, 0, "finish_message"), "no price for gold");
  out = skep_test_action(skep__action, SKEP("price_of"), SKEP("{\"item\":\"tea\"}"));
  skep_test_equal(out.output, "{\"cents\":250}");
  out = skep_test_action(skep__action, SKEP("price_of"), SKEP("{\"item\":\"gold\"}"));
  skep_test_equal(out.output, "{\"code\":\"NOT_FOUND\",\"message\":\"no price for gold\"}");
  return skep_test_failures;
}
