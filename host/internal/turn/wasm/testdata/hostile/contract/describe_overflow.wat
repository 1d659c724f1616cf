;; attacks: a descriptor larger than one may be
;; expect: refused describe
;; error: skep_describe: output: a descriptor is at most 262144 bytes
;; descriptor: none
(module
  (import "skep_v1" "output_write" (func $output_write (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0))
  (func (export "skep_describe") (result i32)
    (loop $again (br_if $again (i32.gt_s (call $output_write (i32.const 0) (i32.const 60000)) (i32.const 0))))
    (i32.const 0)))
