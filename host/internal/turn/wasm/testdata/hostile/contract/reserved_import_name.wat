;; attacks: a reserved name of another module
;; expect: refused admit
;; error: wasm: name "__skep_tick": the prefix __skep belongs to the host (at byte 22)
(module
  (import "skep_v1" "__skep_tick" (func))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0)))
