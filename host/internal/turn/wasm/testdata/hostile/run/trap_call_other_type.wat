;; attacks: a call of a function as another type
;; expect: trap
;; error: skep_turn: indirect call type mismatch
(module
  (memory (export "memory") 1)
  (type $f (func))
  (table 2 2 funcref)
  (elem (i32.const 0) $g)
  (func $g (param i32))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (call_indirect (type $f) (i32.const 0))
    (i32.const 0)))
