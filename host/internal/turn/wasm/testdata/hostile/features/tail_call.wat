;; attacks: a tail call
;; expect: refused admit
;; error: wasm: opcode 0x12 (tail calls) is not admitted (at byte 85)
(module
  (memory (export "memory") 1)
  (func $f (result i32) (i32.const 0))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32)
    (return_call $f)))
