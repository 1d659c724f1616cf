;; attacks: a fill that ends one byte outside
;; expect: trap
;; error: skep_turn: out of bounds memory access
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (memory.fill (i32.const 1) (i32.const 1) (i32.const 65536))
    (i32.const 0)))
