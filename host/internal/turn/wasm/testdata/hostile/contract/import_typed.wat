;; attacks: a function of skep as another type
;; expect: refused abi
;; error: imports skep_v1.call as (i32, i32, i32, i32) -> (i64), but it is (i32, i32, i32, i32, i32) -> (i64); rebuild it with an SDK for ABI 1
(module
  (import "skep_v1" "call" (func (param i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0)))
