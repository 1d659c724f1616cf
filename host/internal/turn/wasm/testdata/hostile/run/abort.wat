;; attacks: abort with a message of four gigabytes
;; expect: abort
;; error: INTERNAL: so long
(module
  (import "skep_v1" "abort" (func $abort (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 8) "so long")
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (call $abort (i32.const 11) (i32.const 8) (i32.const -1))
    (i32.const 0)))
