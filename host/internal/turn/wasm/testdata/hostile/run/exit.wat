;; attacks: an exit that calls itself a success
;; expect: exit
;; error: the module called proc_exit(0)
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (call $proc_exit (i32.const 0))
    (i32.const 0)))
