;; attacks: the last error, kept under 64 handles
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (import "skep_v1" "call" (func $call (param i32 i32 i32 i32 i32) (result i64)))
  (import "skep_v1" "close" (func $close (param i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (drop (call $call (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))
      (drop (call $close (i32.const 99)))
      (br $again))
    (i32.const 0)))
