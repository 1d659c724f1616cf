;; attacks: a skep_warm without a status
;; expect: refused abi
;; error: exports skep_warm as () -> (), but it must be () -> (i32)
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0))
  (func (export "skep_warm")))
