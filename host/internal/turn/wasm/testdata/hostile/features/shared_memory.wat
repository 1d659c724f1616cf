;; attacks: threads: a memory shared with others
;; expect: refused admit
;; error: wasm: not admitted: sharing between threads (threads); build without threads (at byte 27)
(module
  (memory (export "memory") 1 1 shared)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32)
    (i32.const 0)))
