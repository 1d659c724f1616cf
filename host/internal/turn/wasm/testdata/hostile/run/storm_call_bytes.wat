;; attacks: requests of 4 MiB
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (import "skep_v1" "call" (func $call (param i32 i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 64)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (drop (call $call (i32.const 21) (i32.const 0) (i32.const 0x400000) (i32.const 0) (i32.const 8)))
      (br $again))
    (i32.const 0)))
