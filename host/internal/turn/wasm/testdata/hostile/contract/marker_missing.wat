;; attacks: a module that is no agent
;; expect: refused abi
;; error: no skep_abi_v1 export: this is no skep agent; build it with a skep SDK for ABI 1, as a reactor (-buildmode=c-shared in Go)
(module
  (memory (export "memory") 1)
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0)))
