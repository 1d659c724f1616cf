;; attacks: a function of a module nobody offers
;; expect: refused abi
;; error: imports env.system (i32) -> (i32), which this host (ABI 1) does not offer; only skep_v1 and a subset of wasi_snapshot_preview1 can be imported
(module
  (import "env" "system" (func (param i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0)))
