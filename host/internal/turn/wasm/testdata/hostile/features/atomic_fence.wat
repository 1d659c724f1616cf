;; attacks: threads: a fence
;; expect: refused admit
;; error: wasm: opcode 0xfe (threads) is not admitted (at byte 75)
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32)
    (atomic.fence)
    (i32.const 0)))
