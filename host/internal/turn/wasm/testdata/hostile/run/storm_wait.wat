;; attacks: waits for nothing, and for too many
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (import "skep_v1" "wait" (func $wait (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (if (i32.ne (call $wait (i32.const 0) (i32.const 0) (i32.const -1)) (i32.const -1)) (then unreachable))
      (if (i32.ne (call $wait (i32.const 0) (i32.const -1) (i32.const -1)) (i32.const -1)) (then unreachable))
      (if (i32.ne (call $wait (i32.const 65535) (i32.const 64) (i32.const -1)) (i32.const -1)) (then unreachable))
      (if (i32.ne (call $wait (i32.const 0) (i32.const 64) (i32.const -1)) (i32.const -3)) (then unreachable))
      (br $again))
    (i32.const 0)))
