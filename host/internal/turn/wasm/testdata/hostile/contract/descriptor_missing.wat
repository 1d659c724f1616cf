;; attacks: an agent that does not say what it is
;; expect: refused abi
;; error: no descriptor: add a custom section skep.descriptor or export skep_describe
;; descriptor: none
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0)))
