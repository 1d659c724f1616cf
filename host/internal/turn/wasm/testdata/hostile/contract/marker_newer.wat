;; attacks: a marker of the future
;; expect: refused abi
;; error: the marker skep_abi_v2 speaks ABI version 2, this host version 1: upgrade skep, or rebuild the module with an SDK for ABI 1
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v2"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0)))
