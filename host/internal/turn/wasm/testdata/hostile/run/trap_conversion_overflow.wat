;; attacks: a number too large for its integer
;; expect: trap
;; error: skep_turn: integer overflow
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.trunc_f64_u (f64.const 4294967296))))
