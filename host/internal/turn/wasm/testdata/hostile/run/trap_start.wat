;; attacks: a trap in the start function
;; expect: trap
;; error: start: unreachable
(module
  (memory (export "memory") 1)
  (func $start unreachable)
  (start $start)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.const 0)))
