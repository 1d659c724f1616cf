;; attacks: WASI before its first preview
;; expect: refused abi
;; error: imports wasi_unstable.fd_write (i32, i32, i32, i32) -> (i32), which this host (ABI 1) does not offer; only skep_v1 and a subset of wasi_snapshot_preview1 can be imported
(module
  (import "wasi_unstable" "fd_write" (func (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0)))
