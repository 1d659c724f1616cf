;; attacks: a function of WASI as another type
;; expect: refused abi
;; error: imports wasi_snapshot_preview1.proc_exit as (i64) -> (), but it is (i32) -> (); rebuild it with an SDK for ABI 1
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func (param i64)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0)))
