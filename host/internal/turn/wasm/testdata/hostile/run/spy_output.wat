;; attacks: the output of an earlier turn
;; expect: ok
(module
  (import "skep_v1" "output_write" (func $output_write (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{}")
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (if (i32.ne (call $output_write (i32.const 0) (i32.const 2)) (i32.const 2)) (then unreachable))
    (i32.const 0)))
