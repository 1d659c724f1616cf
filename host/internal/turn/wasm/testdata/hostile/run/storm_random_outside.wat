;; attacks: random bytes outside
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (if (i32.ne (call $random_get (i32.const 1) (i32.const 65536)) (i32.const 21)) (then unreachable))
      (br $again))
    (i32.const 0)))
