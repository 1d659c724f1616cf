;; attacks: output before there is a turn
;; expect: ok
(module
  (import "skep_v1" "output_write" (func $output_write (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_initialize")
    (loop $again (br_if $again (i32.gt_s (call $output_write (i32.const 0) (i32.const 65536)) (i32.const 0)))))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.const 0)))
