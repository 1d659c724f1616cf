;; attacks: a division by zero
;; expect: trap
;; error: skep_turn: integer divide by zero
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.div_u (i32.const 1) (i32.const 0))))
