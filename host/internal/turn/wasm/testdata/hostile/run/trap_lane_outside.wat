;; attacks: a lane of a vector outside
;; expect: trap
;; error: skep_turn: out of bounds memory access
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (v128.store8_lane 15 (i32.const 65536) (v128.const i64x2 0 0))
    (i32.const 0)))
