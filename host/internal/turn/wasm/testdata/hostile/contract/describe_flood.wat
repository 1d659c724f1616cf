;; attacks: 100,000 log lines while it describes itself
;; expect: refused describe
;; error: skep_describe: trap: skep_describe: integer divide by zero
;; descriptor: none
(module
  (import "skep_v1" "call" (func $call (param i32 i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0))
  (func (export "skep_describe") (result i32) (local $n i32)
    (loop $again
      (drop (call $call (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))
      (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 100000))))
    (i32.div_u (i32.const 0) (i32.const 0))))
