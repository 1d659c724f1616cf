;; attacks: more answers than may be kept: the 65th is LIMIT, before it runs
;; expect: ok
(module
  (import "skep_v1" "submit" (func $submit (param i32 i32 i32) (result i64)))
  (import "skep_v1" "call" (func $call (param i32 i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32) (local $n i32)
    (loop $again
      (if (i64.lt_s (call $submit (i32.const 20) (i32.const 0) (i32.const 0)) (i64.const 1)) (then unreachable))
      (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 64))))
    (if (i64.ne (call $submit (i32.const 20) (i32.const 0) (i32.const 0)) (i64.const -7)) (then unreachable))
    (if (i64.ne (call $call (i32.const 20) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)) (i64.const -7)) (then unreachable))
    (i32.const 0)))
