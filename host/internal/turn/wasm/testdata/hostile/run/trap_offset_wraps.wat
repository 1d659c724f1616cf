;; attacks: an address and an offset that wrap around to 3
;; expect: trap
;; error: skep_turn: out of bounds memory access
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.load offset=0xffffffff (i32.const 4))))
