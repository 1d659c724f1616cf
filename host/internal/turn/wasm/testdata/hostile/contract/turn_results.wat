;; attacks: a turn with two results
;; expect: refused abi
;; error: exports skep_turn as (i32) -> (i32, i32), but it must be (i32) -> (i32)
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32 i32) (i32.const 0) (i32.const 0)))
