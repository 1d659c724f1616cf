;; attacks: a memory with 64-bit addresses
;; expect: refused admit
;; error: wasm: not admitted: 64-bit addresses (memory64); build for wasm32 (at byte 27)
(module
  (memory (export "memory") i64 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32)
    (i32.const 0)))
