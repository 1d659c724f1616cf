/* The benchmark's guest for extism in C, against the functions of its kernel. */
#include "work.h"

#define IMPORT(n) __attribute__((import_module("extism:host/env"), import_name(n)))
#define EXPORT(n) __attribute__((export_name(n)))

IMPORT("input_length") u64 input_length(void);
IMPORT("input_load_u8") u32 input_load_u8(u64 off);
IMPORT("input_load_u64") u64 input_load_u64(u64 off);
IMPORT("alloc") u64 alloc(u64 len);
IMPORT("store_u8") void store_u8(u64 off, u32 v);
IMPORT("store_u64") void store_u64(u64 off, u64 v);
IMPORT("output_set") void output_set(u64 off, u64 len);

static u32 load(void) {
  u32 n = (u32)input_length(), i = 0;
  for (; i + 8 <= n; i += 8) {
    u64 v = input_load_u64(i);
    __builtin_memcpy(in + i, &v, 8);
  }
  for (; i < n; i++) in[i] = (char)input_load_u8(i);
  return n;
}

static int answer(const char *from, u32 n) {
  u64 to = alloc(n);
  u32 i = 0;
  for (; i + 8 <= n; i += 8) {
    u64 v;
    __builtin_memcpy(&v, from + i, 8);
    store_u64(to + i, v);
  }
  for (; i < n; i++) store_u8(to + i, (unsigned char)from[i]);
  output_set(to, n);
  return 0;
}

EXPORT("echo") int echo(void) { return answer(in, load()); }

EXPORT("json") int json(void) {
  u32 n = load();
  return answer(out, work(in, n));
}
