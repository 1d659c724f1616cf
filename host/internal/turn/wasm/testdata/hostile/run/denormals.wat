;; attacks: arithmetic on numbers that processors are slow with
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32) (local $x f64)
    (loop $again
      (local.set $x (f64.mul (f64.add (local.get $x) (f64.const 0x1p-1074)) (f64.const 0x1.8p-1)))
      (local.set $x (f64.sqrt (f64.div (local.get $x) (f64.const 0x1p1023))))
      (br $again))
    (i32.const 0)))
