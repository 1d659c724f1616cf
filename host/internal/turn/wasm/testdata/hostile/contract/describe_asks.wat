;; attacks: ops while it describes itself
;; expect: refused describe
;; error: skep_describe: failed: DENIED: secret.exists is not granted while a module starts
;; descriptor: none
(module
  (import "skep_v1" "output_write" (func $output_write (param i32 i32) (result i32)))
  (import "skep_v1" "call" (func $call (param i32 i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0))
  (func (export "skep_describe") (result i32)
    (drop (call $call (i32.const 50) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))
    (drop (call $output_write (i32.const 0) (i32.wrap_i64 (call $call (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 1024)))))
    (i32.const 1)))
