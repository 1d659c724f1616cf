;; attacks: a loop in _initialize
;; expect: fuel limits.fuel
;; error: used up its fuel of the start of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (memory (export "memory") 1)
  (func (export "_initialize") (loop $again (br $again)))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.const 0)))
