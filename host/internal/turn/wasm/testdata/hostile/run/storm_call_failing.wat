;; attacks: ops that fail with a long message
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
;; ops: failing
(module
  (import "skep_v1" "call" (func $call (param i32 i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (drop (call $call (i32.const 20) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))
      (drop (call $call (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 65536)))
      (br $again))
    (i32.const 0)))
