;; attacks: what a turn that trapped left behind: nothing is used again
;; expect: trap
;; error: skep_turn: unreachable
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (if (i32.load (i32.const 0)) (then (return (i32.const 0))))
    (i32.store (i32.const 0) (i32.const 1))
    unreachable))
