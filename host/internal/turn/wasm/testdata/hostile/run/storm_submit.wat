;; attacks: ops that nobody waits for: 64, and then refusals
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (import "skep_v1" "submit" (func $submit (param i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (drop (call $submit (i32.const 20) (i32.const 0) (i32.const 0)))
      (br $again))
    (i32.const 0)))
