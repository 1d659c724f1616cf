;; attacks: 64 answers of 200,000 bytes, kept and never read
;; expect: ok
;; ops: large
(module
  (import "skep_v1" "call" (func $call (param i32 i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32) (local $n i32)
    (loop $again
      (if (i64.lt_s (call $call (i32.const 20) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)) (i64.const 0)) (then unreachable))
      (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 64))))
    (i32.const 0)))
