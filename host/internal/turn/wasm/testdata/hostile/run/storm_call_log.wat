;; attacks: log lines
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (import "skep_v1" "call" (func $call (param i32 i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 16) "{\22level\22:\22error\22,\22message\22:1}")
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (drop (call $call (i32.const 1) (i32.const 16) (i32.const 30) (i32.const 64) (i32.const 64)))
      (br $again))
    (i32.const 0)))
