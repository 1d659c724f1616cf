;; attacks: a loop that carries its operands
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.const 0)
    (loop $again (param i32) (result i32) (i32.add (i32.const 1)) (br $again))))
