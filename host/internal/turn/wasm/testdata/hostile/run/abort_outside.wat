;; attacks: abort with a message outside
;; expect: abort
;; error: CODE_-1: (its message is not in its memory)
(module
  (import "skep_v1" "abort" (func $abort (param i32 i32 i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (call $abort (i32.const -1) (i32.const -1) (i32.const 1))
    (i32.const 0)))
