;; attacks: a result of 260,000 notes
;; expect: ok
(module
  (import "skep_v1" "output_write" (func $output_write (param i32 i32) (result i32)))
  (memory (export "memory") 17)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32) (local $at i32)
    (i64.store (i32.const 0) (i64.const 0x227365746f6e227b))
    (i32.store16 (i32.const 8) (i32.const 0x5b3a))
    (local.set $at (i32.const 10))
    (loop $again
      (i32.store (local.get $at) (i32.const 0x202c2222))
      (br_if $again (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 4))) (i32.const 1048562))))
    (i64.store (local.get $at) (i64.const 0x7d5d2222))
    (drop (call $output_write (i32.const 0) (i32.add (local.get $at) (i32.const 4))))
    (i32.const 0)))
