;; attacks: proc_exit while it describes itself
;; expect: refused describe
;; error: skep_describe: exit: the module called proc_exit(0)
;; descriptor: none
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0))
  (func (export "skep_describe") (result i32) (call $proc_exit (i32.const 0)) (i32.const 0)))
