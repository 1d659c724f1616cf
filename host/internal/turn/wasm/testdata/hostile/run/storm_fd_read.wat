;; attacks: reads of standard input
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (if (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1024) (i32.const 8)) (then unreachable))
      (br $again))
    (i32.const 0)))
