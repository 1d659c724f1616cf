;; attacks: output until it is refused
;; expect: output limits.output
;; error: wrote more than 1048576 bytes of output
(module
  (import "skep_v1" "output_write" (func $output_write (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again (br_if $again (i32.gt_s (call $output_write (i32.const 0) (i32.const 60000)) (i32.const 0))))
    (i32.const 0)))
