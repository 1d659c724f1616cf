;; attacks: reads of a large input
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
;; input: 2000000
(module
  (import "skep_v1" "input_read" (func $input_read (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (drop (call $input_read (i32.const 0) (i32.const 0) (i32.const 65536)))
      (br $again))
    (i32.const 0)))
