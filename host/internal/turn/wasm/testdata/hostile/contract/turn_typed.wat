;; attacks: a turn of another type
;; expect: refused abi
;; error: exports skep_turn as (i64) -> (i32), but it must be (i32) -> (i32)
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i64) (result i32) (i32.const 0)))
