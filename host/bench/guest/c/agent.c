/* The benchmark's guest for skep in C. The first byte of its input says what it
 * does: E echoes the rest, J works on it, O calls the host as often as the rest
 * says, S does so with small questions, B calls the host once. */
#include "work.h"

#define IMPORT(n) __attribute__((import_module("skep_v1"), import_name(n)))
#define EXPORT(n) __attribute__((export_name(n)))

IMPORT("input_read") int input_read(u32 off, void *ptr, u32 cap);
IMPORT("output_write") int output_write(const void *ptr, u32 len);
IMPORT("call") long long call(int op, const void *req, u32 req_len, void *rsp, u32 rsp_cap);

EXPORT("skep_abi_v1") void marker(void) {}

EXPORT("skep_describe") int describe(void) {
  static const char d[] = "{\"abi\":1,\"name\":\"bench\",\"version\":\"1\"}";
  output_write(d, sizeof d - 1);
  return 0;
}

static void ask(u32 size) { call(2, in, size, out, sizeof out); }

EXPORT("skep_turn") int turn(int size) {
  u32 n = (u32)input_read(0, in, sizeof in), times = 0;
  (void)size;
  switch (in[0]) {
  case 'E':
    output_write(in + 1, n - 1);
    break;
  case 'J':
    output_write(out, work(in + 1, n - 1));
    break;
  case 'O':
  case 'S':
    for (u32 i = 1; i < n; i++) times = 10 * times + (u32)(in[i] - '0');
    while (times--) ask(in[0] == 'S' ? 64 : 1024);
    break;
  case 'B':
    ask(1024);
  }
  return 0;
}
