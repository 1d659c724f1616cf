;; attacks: an image that an earlier turn wrote over
;; expect: ok
(module
  (import "skep_v1" "input_read" (func $input_read (param i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (func (export "_initialize") (memory.fill (i32.const 0x10000) (i32.const 1) (i32.const 0x10000)))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (if (i64.ne (i64.load (i32.const 0x10000)) (i64.const 0x0101010101010101)) (then unreachable))
    (if (i64.ne (i64.load (i32.const 0x1fff8)) (i64.const 0x0101010101010101)) (then unreachable))
    (drop (call $input_read (i32.const 0) (i32.const 0x10000) (i32.const 64)))
    (memory.fill (i32.const 0x10040) (i32.const 9) (i32.const 0xffc0))
    (i32.const 0)))
