;; attacks: abort with a message that is no text
;; expect: abort
;; error: INVALID: a�(
(module
  (import "skep_v1" "abort" (func $abort (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 8) "a\ff\c3\28\00b")
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (call $abort (i32.const 1) (i32.const 8) (i32.const 6))
    (i32.const 0)))
