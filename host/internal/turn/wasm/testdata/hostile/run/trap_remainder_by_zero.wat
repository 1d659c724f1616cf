;; attacks: a remainder of zero
;; expect: trap
;; error: skep_turn: integer divide by zero
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.wrap_i64 (i64.rem_s (i64.const 1) (i64.const 0)))))
