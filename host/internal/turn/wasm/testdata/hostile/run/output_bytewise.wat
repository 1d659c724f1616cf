;; attacks: output byte by byte
;; expect: fuel limits.fuel
;; error: used up its fuel of 20000000 units
;; limits: fuel=20000000 output=65536
(module
  (import "skep_v1" "output_write" (func $output_write (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (br_if $again (i32.gt_s (call $output_write (i32.const 0) (i32.const 1)) (i32.const 0)))
      (br $again))
    (i32.const 0)))
