;; attacks: a store behind the end of memory
;; expect: trap
;; error: skep_turn: out of bounds memory access
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i64.store (i32.const 65536) (i64.const 1))
    (i32.const 0)))
