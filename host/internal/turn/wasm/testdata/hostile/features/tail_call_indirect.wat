;; attacks: a tail call through a table
;; expect: refused admit
;; error: wasm: opcode 0x13 (tail calls) is not admitted (at byte 87)
(module
  (memory (export "memory") 1)
  (table 1 funcref)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32)
    (return_call_indirect (result i32) (i32.const 0))))
