;; attacks: ops before there is a turn: nothing is granted
;; expect: ok
(module
  (import "skep_v1" "call" (func $call (param i32 i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "_initialize")
    (if (i64.ne (call $call (i32.const 10) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)) (i64.const -2))
      (then unreachable)))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.const 0)))
