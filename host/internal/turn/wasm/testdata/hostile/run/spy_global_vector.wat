;; attacks: what an earlier turn left in a global that is a vector
;; expect: ok
(module
  (import "skep_v1" "input_read" (func $input_read (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (global $a (mut v128) (v128.const i64x2 0 0))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (if (v128.any_true (global.get $a)) (then unreachable))
    (drop (call $input_read (i32.const 0) (i32.const 0) (i32.const 64)))
    (global.set $a (v128.load (i32.const 0)))
    (i32.const 0)))
