;; attacks: two memories
;; expect: refused admit
;; error: wasm: more than one memory (at byte 29)
(module
  (memory (export "memory") 1)
  (memory 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32)
    (i32.const 0)))
