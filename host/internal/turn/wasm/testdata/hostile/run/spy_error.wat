;; attacks: the last error of an earlier turn
;; expect: ok
;; ops: failing
(module
  (import "skep_v1" "call" (func $call (param i32 i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (if (i64.ne (call $call (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 64)) (i64.const 0)) (then unreachable))
    (drop (call $call (i32.const 20) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))
    (i32.const 0)))
