;; attacks: a result of a megabyte of spaces
;; expect: failed
;; error: bad output: not JSON: unexpected end of JSON input
(module
  (import "skep_v1" "output_write" (func $output_write (param i32 i32) (result i32)))
  (memory (export "memory") 16)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (memory.fill (i32.const 0) (i32.const 32) (i32.const 0x100000))
    (drop (call $output_write (i32.const 0) (i32.const 0x100000)))
    (i32.const 0)))
