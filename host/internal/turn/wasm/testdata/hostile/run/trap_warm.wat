;; attacks: a trap in skep_warm
;; expect: trap
;; error: skep_warm: integer divide by zero
(module
  (memory (export "memory") 1)
  (func (export "skep_warm") (result i32) (i32.div_u (i32.const 0) (i32.const 0)))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.const 0)))
