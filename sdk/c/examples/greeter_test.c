#include "greeter.c"
#include "skep_test.h"

static skep_code refuse(int32_t op, skep_json request, skep_json *answer) {
  (void)request, (void)answer;
  return op == SKEP_OP_MAIL ? SKEP_DENIED : SKEP_OK;
}

int main(void) {
  skep_test_input in = {.body = SKEP("Ada \"the\" Countess"), .params = SKEP("{\"greeting\":\"Gr\\u00fcezi\"}")};
  skep_test_outcome first = skep_test_turn(in);
  skep_test_equal(skep_test_mail(&first, 0, "tool"), "task_complete");
  skep_test_equal(skep_test_mail(&first, 0, "finish_message"), "Grüezi, Ada \"the\" Countess! (greeting 1 of this task)");
  skep_test_equal(first.state, "{\"greeted\":1}");

  in.state = first.state;
  in.params = (skep_json){0};
  skep_test_outcome second = skep_test_turn(in);
  skep_test_equal(skep_test_mail(&second, 0, "finish_message"), "Hello, Ada \"the\" Countess! (greeting 2 of this task)");

  in.answer = refuse;
  skep_test_outcome refused = skep_test_turn(in);
  skep_test_equal(refused.output, "{\"code\":\"DENIED\",\"message\":\"refused by the test\"}");
  skep_test_equal(refused.state, "{\"greeted\":1}");
  return skep_test_failures;
}
