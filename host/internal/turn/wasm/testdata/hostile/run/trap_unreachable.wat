;; attacks: the plainest trap
;; expect: trap
;; error: skep_turn: unreachable
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    unreachable))
