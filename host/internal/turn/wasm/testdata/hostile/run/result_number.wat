;; attacks: a number that no machine can hold, as a note
;; expect: failed
;; error: bad output: notes[0] must be a text, not the number 1e999999999
(module
  (import "skep_v1" "output_write" (func $output_write (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 8) "{\22notes\22:[1e999999999]}")
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (drop (call $output_write (i32.const 8) (i32.const 23)))
    (i32.const 0)))
