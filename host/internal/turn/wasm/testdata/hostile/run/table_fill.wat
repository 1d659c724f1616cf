;; attacks: 99,000 elements filled by one instruction
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (memory (export "memory") 1)
  (table $t 99000 funcref)
  (func $f)
  (elem declare func $f)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (table.fill $t (i32.const 0) (ref.func $f) (i32.const 99000))
      (br $again))
    (i32.const 0)))
