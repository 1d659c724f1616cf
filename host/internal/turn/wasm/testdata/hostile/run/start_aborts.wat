;; attacks: abort in the start function
;; expect: abort
;; error: NOT_FOUND: 
(module
  (import "skep_v1" "abort" (func $abort (param i32 i32 i32)))
  (memory (export "memory") 1)
  (func $start (call $abort (i32.const 3) (i32.const 0) (i32.const 0)))
  (start $start)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.const 0)))
