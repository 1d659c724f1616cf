;; attacks: more output at once than there may be
;; expect: output limits.output
;; error: wrote more than 1048576 bytes of output
(module
  (import "skep_v1" "output_write" (func $output_write (param i32 i32) (result i32)))
  (memory (export "memory") 64)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (if (i32.ne (call $output_write (i32.const 0) (i32.const 0x200000)) (i32.const -7)) (then unreachable))
    (i32.const 0)))
