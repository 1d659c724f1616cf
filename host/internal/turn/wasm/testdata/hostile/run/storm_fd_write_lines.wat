;; attacks: 65,536 empty lines at once
;; expect: fuel limits.fuel
;; error: used up its fuel of 500000 units
;; limits: fuel=500000 start=5000000
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 0) "\10\00\00\00\00\00\01\00")
  (func (export "_initialize") (memory.fill (i32.const 16) (i32.const 10) (i32.const 0x10000)))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (if (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)) (then unreachable))
      (br $again))
    (i32.const 0)))
