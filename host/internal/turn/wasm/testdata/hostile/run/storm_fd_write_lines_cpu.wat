;; attacks: the same within its fuel but not its time
;; expect: cpu limits.cpu
;; error: used up its computing time of 20ms
;; limits: fuel=1000000000000 cpu_ms=20
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
