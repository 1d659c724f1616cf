;; attacks: handles opened and closed until their numbers run out
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (import "skep_v1" "submit" (func $submit (param i32 i32 i32) (result i64)))
  (import "skep_v1" "close" (func $close (param i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (drop (call $close (i32.wrap_i64 (call $submit (i32.const 20) (i32.const 0) (i32.const 0)))))
      (br $again))
    (i32.const 0)))
