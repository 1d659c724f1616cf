;; attacks: the same without tables, so that there is an image beside it
;; expect: ok
;; takes: host_bytes output
;; ops: large
(module
  (import "skep_v1" "call" (func $call (param i32 i32 i32 i32 i32) (result i64)))
  (import "skep_v1" "output_write" (func $output_write (param i32 i32) (result i32)))
  (memory (export "memory") 1024)
  (func (export "_initialize") (memory.fill (i32.const 0) (i32.const 1) (i32.const 0x1000000)))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32) (local $n i32)
    (memory.fill (i32.const 0) (i32.const 2) (i32.const 0x4000000))
    (loop $again
      (if (i64.lt_s (call $call (i32.const 20) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)) (i64.const 0)) (then unreachable))
      (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 64))))
    (memory.fill (i32.const 0) (i32.const 32) (i32.const 0x100000))
    (i32.store (i32.const 0) (i32.const 0x20207d7b))
    (drop (call $output_write (i32.const 0) (i32.const 0x100000)))
    (i32.const 0)))
