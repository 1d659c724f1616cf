;; attacks: what an earlier turn left in memory it had grown
;; expect: ok
(module
  (import "skep_v1" "input_read" (func $input_read (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32) (local $at i32)
    (drop (memory.grow (i32.const 8)))
    (loop $again
      (if (i64.ne (i64.load (local.get $at)) (i64.const 0)) (then unreachable))
      (br_if $again (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8))) (i32.shl (memory.size) (i32.const 16)))))
    (drop (call $input_read (i32.const 0) (i32.const 0) (i32.const 64)))
    (local.set $at (i32.const 64))
    (loop $again
      (memory.copy (local.get $at) (i32.const 0) (i32.const 64))
      (br_if $again (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 64))) (i32.shl (memory.size) (i32.const 16)))))
    (i32.const 0)))
