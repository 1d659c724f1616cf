;; attacks: four gigabytes in 1,024 vectors, of memory that is there once
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 512)
  (func (export "_initialize") (local $i i32)
    (loop $again
      (i32.store offset=4 (local.get $i) (i32.const 0x1ff0000))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 8))) (i32.const 8192)))))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (drop (call $fd_write (i32.const 2) (i32.const 0) (i32.const 1024) (i32.const 16384)))
      (br $again))
    (i32.const 0)))
