;; attacks: a descriptor nested 200,000 deep
;; expect: refused describe
;; error: descriptor: nested deeper than 64 levels
;; descriptor: none
(module
  (import "skep_v1" "output_write" (func $output_write (param i32 i32) (result i32)))
  (memory (export "memory") 4)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0))
  (func (export "skep_describe") (result i32)
    (memory.fill (i32.const 0) (i32.const 0x5b) (i32.const 200000))
    (drop (call $output_write (i32.const 0) (i32.const 200000)))
    (i32.const 0)))
