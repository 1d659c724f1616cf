;; attacks: a panic as Go writes it; the words are told
;; expect: trap
;; error: skep_turn: unreachable (last words: panic: out of good ideas)
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\10\00\00\00\19\00\00\00")
  (data (i32.const 16) "panic: out of good ideas\n")
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (drop (call $fd_write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))
    unreachable))
