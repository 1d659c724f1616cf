;; attacks: exceptions: a block that catches
;; expect: refused admit
;; error: wasm: opcode 0x06 (exceptions) is not admitted (at byte 75)
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32)
    (try (do (nop)) (catch_all (nop)))
    (i32.const 0)))
