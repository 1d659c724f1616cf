;; attacks: requests and answers that wrap around
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (import "skep_v1" "call" (func $call (param i32 i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (if (i64.ne (call $call (i32.const 20) (i32.const 0) (i32.const 0) (i32.const 65535) (i32.const 2)) (i64.const -1)) (then unreachable))
      (if (i64.ne (call $call (i32.const 20) (i32.const -4) (i32.const 8) (i32.const 0) (i32.const 0)) (i64.const -1)) (then unreachable))
      (br $again))
    (i32.const 0)))
