;; attacks: a loop whose only way back is a br_table
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (block $out (br_table $again $again $out $again (local.get $len)))
      (br $again))
    (i32.const 0)))
