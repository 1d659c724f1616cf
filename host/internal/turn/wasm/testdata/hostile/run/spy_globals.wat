;; attacks: what an earlier turn left in globals
;; expect: ok
(module
  (import "skep_v1" "input_read" (func $input_read (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (global $a (mut i64) (i64.const 7))
  (global $b (mut f64) (f64.const 0))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (if (i64.ne (global.get $a) (i64.const 7)) (then unreachable))
    (if (f64.ne (global.get $b) (f64.const 0)) (then unreachable))
    (drop (call $input_read (i32.const 0) (i32.const 0) (i32.const 64)))
    (global.set $a (i64.load (i32.const 0)))
    (global.set $b (f64.load (i32.const 8)))
    (i32.const 0)))
