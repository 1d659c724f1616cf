;; attacks: half a result
;; expect: failed
;; error: bad output: not JSON: unexpected end of JSON input
(module
  (import "skep_v1" "output_write" (func $output_write (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 8) "{\22state\22:")
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (drop (call $output_write (i32.const 8) (i32.const 9)))
    (i32.const 0)))
