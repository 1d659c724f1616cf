;; attacks: exceptions: a tag
;; expect: refused admit
;; error: wasm: section 13 is not admitted (at byte 29)
(module
  (memory (export "memory") 1)
  (tag $e)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32)
    (i32.const 0)))
