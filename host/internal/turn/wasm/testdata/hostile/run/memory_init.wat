;; attacks: a segment copied again and again
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (memory (export "memory") 1)
  (data $d "abc")
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (memory.init $d (i32.const 0) (i32.const 0) (i32.const 3))
      (br $again))
    (i32.const 0)))
