;; attacks: a sleep of an hour in _initialize, which must cost nobody an hour
;; expect: ok
(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_initialize")
    (i32.store (i32.const 16) (i32.const 1))
    (i64.store (i32.const 24) (i64.const 3600000000000))
    (if (call $poll_oneoff (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 128)) (then unreachable)))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.const 0)))
