;; attacks: more vectors than any call may have, and some outside
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (if (i32.ne (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1025) (i32.const 0)) (i32.const 28)) (then unreachable))
      (if (i32.ne (call $fd_write (i32.const 1) (i32.const 0) (i32.const -1) (i32.const 0)) (i32.const 28)) (then unreachable))
      (if (i32.ne (call $fd_write (i32.const 1) (i32.const 65529) (i32.const 1) (i32.const 0)) (i32.const 21)) (then unreachable))
      (if (i32.ne (call $fd_write (i32.const 3) (i32.const 0) (i32.const 1) (i32.const 0)) (i32.const 8)) (then unreachable))
      (br $again))
    (i32.const 0)))
