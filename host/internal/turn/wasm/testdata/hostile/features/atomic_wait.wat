;; attacks: threads: a wait that no one ends
;; expect: refused admit
;; error: wasm: opcode 0xfe (threads) is not admitted (at byte 81)
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32)
    (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1))))
