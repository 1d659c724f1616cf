;; attacks: a memory with 64-bit addresses
;; expect: refused admit
;; error: wasm: limits with flags 0x04 are not admitted (at byte 27)
(module
  (memory (export "memory") i64 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32)
    (i32.const 0)))
