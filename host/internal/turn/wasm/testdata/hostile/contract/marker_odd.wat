;; attacks: a marker of no version
;; expect: refused abi
;; error: the marker skep_abi_v01 speaks ABI version 01, this host version 1: rebuild the module with an SDK for ABI 1
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v01"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0)))
