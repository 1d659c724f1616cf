;; attacks: the counter of fuel, exported by the guest
;; expect: refused admit
;; error: wasm: name "__skep_slice": the prefix __skep belongs to the host (at byte 75)
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0))
  (global (export "__skep_slice") (mut i64) (i64.const 0)))
