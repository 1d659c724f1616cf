;; attacks: a state one byte too large
;; expect: failed
;; error: bad output: a state of 65537 bytes, at most 65536
(module
  (import "skep_v1" "output_write" (func $output_write (param i32 i32) (result i32)))
  (memory (export "memory") 4)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (memory.fill (i32.const 0) (i32.const 0x61) (i32.const 0x20000))
    (i64.store (i32.const 0) (i64.const 0x226574617473227b))
    (i32.store16 (i32.const 8) (i32.const 0x223a))
    (i32.store16 (i32.const 65545) (i32.const 0x7d22))
    (drop (call $output_write (i32.const 0) (i32.const 65547)))
    (i32.const 0)))
