;; attacks: reads of handles that are not open
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (import "skep_v1" "read" (func $read (param i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (if (i64.ne (call $read (i32.const 0) (i32.const 0) (i32.const 0)) (i64.const -3)) (then unreachable))
      (if (i64.ne (call $read (i32.const -1) (i32.const 0) (i32.const -1)) (i64.const -3)) (then unreachable))
      (br $again))
    (i32.const 0)))
