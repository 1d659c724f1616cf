;; attacks: an offset of data that computes
;; expect: refused admit
;; error: wasm: initialiser is not one constant (at byte 82)
(module
  (memory (export "memory") 1)
  (data (offset (i32.mul (i32.const 2) (i32.const 2))) "a")
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32)
    (i32.const 0)))
