;; attacks: a marker that wants to be called with something
;; expect: refused abi
;; error: exports skep_abi_v1 as (i64) -> (), but it must be () -> ()
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1") (param i64))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0)))
