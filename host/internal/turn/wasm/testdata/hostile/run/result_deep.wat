;; attacks: a state nested a million deep
;; expect: failed
;; error: bad output: not JSON: invalid character '[' exceeded max depth
(module
  (import "skep_v1" "output_write" (func $output_write (param i32 i32) (result i32)))
  (memory (export "memory") 16)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (memory.fill (i32.const 0) (i32.const 0x5b) (i32.const 0x100000))
    (i64.store (i32.const 0) (i64.const 0x226574617473227b))
    (i32.store8 (i32.const 0) (i32.const 0x7b))
    (i32.store8 (i32.const 8) (i32.const 0x3a))
    (drop (call $output_write (i32.const 0) (i32.const 0x100000)))
    (i32.const 0)))
