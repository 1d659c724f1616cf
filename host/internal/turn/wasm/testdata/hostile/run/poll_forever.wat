;; attacks: a sleep of 584 years, and one until the end of time
;; expect: ok
(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.store (i32.const 16) (i32.const 1))
    (i64.store (i32.const 24) (i64.const -1))
    (drop (call $poll_oneoff (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 128)))
    (i32.store16 (i32.const 40) (i32.const 1))
    (drop (call $poll_oneoff (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 128)))
    (i32.const 0)))
