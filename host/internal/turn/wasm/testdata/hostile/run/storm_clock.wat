;; attacks: the clock, which stands still
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_res_get" (func $clock_res_get (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (drop (call $clock_time_get (i32.const 1) (i64.const 0) (i32.const 0)))
      (if (i32.ne (call $clock_time_get (i32.const 3) (i64.const 0) (i32.const 0)) (i32.const 28)) (then unreachable))
      (if (i32.ne (call $clock_res_get (i32.const 0) (i32.const 65529)) (i32.const 21)) (then unreachable))
      (br $again))
    (i32.const 0)))
