;; attacks: a function skep does not have
;; expect: refused abi
;; error: imports skep_v1.eval (i32) -> (), which this host (ABI 1) does not offer; the module may be for a newer skep: upgrade skep, or rebuild the module without it, with an SDK for ABI 1
(module
  (import "skep_v1" "eval" (func (param i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0)))
