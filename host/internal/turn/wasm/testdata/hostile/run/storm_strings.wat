;; attacks: arguments and environment, to addresses outside
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (import "wasi_snapshot_preview1" "args_get" (func $args_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_get" (func $environ_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ_sizes_get (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (if (call $args_get (i32.const -1) (i32.const -1)) (then unreachable))
      (if (call $environ_get (i32.const -1) (i32.const -1)) (then unreachable))
      (if (i32.ne (call $args_sizes_get (i32.const 65533) (i32.const 0)) (i32.const 21)) (then unreachable))
      (if (i32.ne (call $environ_sizes_get (i32.const 0) (i32.const -1)) (i32.const 21)) (then unreachable))
      (br $again))
    (i32.const 0)))
