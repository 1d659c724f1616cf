;; attacks: status 2: not implemented
;; expect: failed
;; error: skep_turn is not implemented by this module
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.const 2)))
