;; attacks: answers that nobody asked to be so large, up to 16 MiB of them
;; expect: ok
;; ops: large
(module
  (import "skep_v1" "call" (func $call (param i32 i32 i32 i32 i32) (result i64)))
  (import "skep_v1" "close" (func $close (param i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32) (local $r i64) (local $n i32)
    (loop $again
      (local.set $r (call $call (i32.const 20) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))
      (drop (call $close (i32.wrap_i64 (i64.shr_u (local.get $r) (i64.const 32)))))
      (local.set $n (i32.add (local.get $n) (i32.const 1)))
      (br_if $again (i64.ge_s (local.get $r) (i64.const 0))))
    (if (i64.ne (local.get $r) (i64.const -7)) (then unreachable))
    (if (i32.ne (local.get $n) (i32.const 84)) (then unreachable))
    (i32.const 0)))
