;; attacks: table grows by nothing, without end
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (memory (export "memory") 1)
  (table $t 1 funcref)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (drop (table.grow $t (ref.null func) (i32.const 0)))
      (br $again))
    (i32.const 0)))
