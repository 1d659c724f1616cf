;; attacks: a loop whose body goes on behind its branch
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again (br $again) (drop (i32.add)) (unreachable))
    (i32.const 0)))
