;; attacks: the one signed division that overflows
;; expect: trap
;; error: skep_turn: integer overflow
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.div_s (i32.const 0x80000000) (i32.const -1))))
