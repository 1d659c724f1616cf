;; attacks: a segment that was dropped
;; expect: trap
;; error: skep_turn: out of bounds memory access
(module
  (memory (export "memory") 1)
  (data $d "abc")
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (data.drop $d)
    (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1))
    (i32.const 0)))
