;; attacks: descriptors that are not there
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (import "wasi_snapshot_preview1" "fd_close" (func $fd_close (param i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_fdstat_get" (func $fd_fdstat_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_fdstat_set_flags" (func $fd_fdstat_set_flags (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_prestat_get" (func $fd_prestat_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_prestat_dir_name" (func $fd_prestat_dir_name (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_seek" (func $fd_seek (param i32 i64 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (if (i32.ne (call $fd_close (i32.const 3)) (i32.const 8)) (then unreachable))
      (if (i32.ne (call $fd_fdstat_get (i32.const 0) (i32.const 65513)) (i32.const 21)) (then unreachable))
      (if (i32.ne (call $fd_fdstat_set_flags (i32.const -1) (i32.const 0)) (i32.const 8)) (then unreachable))
      (if (i32.ne (call $fd_prestat_get (i32.const 3) (i32.const 0)) (i32.const 8)) (then unreachable))
      (if (i32.ne (call $fd_prestat_dir_name (i32.const 3) (i32.const 0) (i32.const -1)) (i32.const 8)) (then unreachable))
      (if (i32.ne (call $fd_seek (i32.const 1) (i64.const -1) (i32.const 2) (i32.const -1)) (i32.const 70)) (then unreachable))
      (br $again))
    (i32.const 0)))
