;; attacks: a copy whose length wraps around
;; expect: trap
;; error: skep_turn: out of bounds memory access
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (memory.copy (i32.const 8) (i32.const 0) (i32.const -4))
    (i32.const 0)))
