;; attacks: a trap in _initialize
;; expect: trap
;; error: _initialize: out of bounds memory access
(module
  (memory (export "memory") 1)
  (func (export "_initialize") (drop (i32.load (i32.const -1))))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.const 0)))
