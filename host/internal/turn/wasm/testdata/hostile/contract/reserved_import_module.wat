;; attacks: the host's own import
;; expect: refused admit
;; error: wasm: name "__skep": the prefix __skep belongs to the host (at byte 22)
(module
  (import "__skep" "tick" (func))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0)))
