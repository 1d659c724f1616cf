;; attacks: the slowest instructions that have no call: divisions
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32) (local $n i64)
    (loop $again
      (local.set $n (i64.div_s (i64.const 0x7fffffffffffffff) (i64.or (local.get $n) (i64.const 1))))
      (local.set $n (i64.rem_u (i64.const -1) (i64.or (local.get $n) (i64.const 3))))
      (br $again))
    (i32.const 0)))
