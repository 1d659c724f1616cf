;; attacks: a NaN made an integer
;; expect: trap
;; error: skep_turn: invalid conversion to integer
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.trunc_f32_s (f32.const nan))))
