;; attacks: a socket
;; expect: refused abi
;; error: imports wasi_snapshot_preview1.sock_accept (i32, i32, i32) -> (i32), which this host (ABI 1) does not offer; agents have no files, sockets or processes: avoid what needs them
(module
  (import "wasi_snapshot_preview1" "sock_accept" (func (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0)))
