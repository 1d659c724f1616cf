;; attacks: handles of an earlier turn
;; expect: ok
(module
  (import "skep_v1" "read" (func $read (param i32 i32 i32) (result i64)))
  (import "skep_v1" "submit" (func $submit (param i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (if (i64.ne (call $read (i32.const 1) (i32.const 0) (i32.const 64)) (i64.const -3)) (then unreachable))
    (drop (call $submit (i32.const 20) (i32.const 0) (i32.const 0)))
    (i32.const 0)))
