;; attacks: a loop that counts to 2^64
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32) (local $n i64)
    (loop $again (local.set $n (i64.add (local.get $n) (i64.const 1))) (br_if $again (i64.ne (local.get $n) (i64.const 0))))
    (i32.const 0)))
