;; attacks: threads: an atomic add
;; expect: refused admit
;; error: wasm: opcode 0xfe (threads) is not admitted (at byte 79)
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32)
    (i32.atomic.rmw.add (i32.const 0) (i32.const 1))))
