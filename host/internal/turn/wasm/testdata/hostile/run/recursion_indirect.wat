;; attacks: two functions that call each other through a table
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (memory (export "memory") 1)
  (type $f (func (param i32) (result i32)))
  (table 2 2 funcref)
  (elem (i32.const 0) $a $b)
  (func $a (param $n i32) (result i32)
    (if (i32.eqz (local.get $n)) (then (return (i32.const 0))))
    (i32.add (call_indirect (type $f) (i32.sub (local.get $n) (i32.const 1)) (i32.const 1))
             (call_indirect (type $f) (i32.sub (local.get $n) (i32.const 1)) (i32.const 1))))
  (func $b (param $n i32) (result i32)
    (if (i32.eqz (local.get $n)) (then (return (i32.const 0))))
    (i32.add (call_indirect (type $f) (i32.sub (local.get $n) (i32.const 1)) (i32.const 0))
             (call_indirect (type $f) (i32.sub (local.get $n) (i32.const 1)) (i32.const 0))))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (call $a (i32.const 60))))
