;; attacks: the input of a turn, before there is one
;; expect: ok
(module
  (import "skep_v1" "input_read" (func $input_read (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_initialize")
    (if (call $input_read (i32.const 0) (i32.const 0) (i32.const 64)) (then unreachable)))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.const 0)))
