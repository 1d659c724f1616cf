;; attacks: handles closed that are not open
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (import "skep_v1" "close" (func $close (param i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (if (i32.ne (call $close (i32.const 0x7fffffff)) (i32.const -3)) (then unreachable))
      (br $again))
    (i32.const 0)))
