;; attacks: the name of the start function
;; expect: refused admit
;; error: wasm: name "__skep_start": the prefix __skep belongs to the host (at byte 68)
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0))
  (func (export "__skep_start")))
