;; attacks: an initialiser that computes
;; expect: refused admit
;; error: wasm: initialiser is not one constant (at byte 34)
(module
  (memory (export "memory") 1)
  (global i32 (i32.add (i32.const 1) (i32.const 2)))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32)
    (i32.const 0)))
