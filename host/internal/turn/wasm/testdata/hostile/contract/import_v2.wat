;; attacks: a function of the next version
;; expect: refused abi
;; error: the import skep_v2.call speaks ABI version 2, this host version 1: upgrade skep, or rebuild the module with an SDK for ABI 1
(module
  (import "skep_v2" "call" (func (param i32 i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0)))
