;; attacks: a call of an element outside its table
;; expect: trap
;; error: skep_turn: invalid table access
(module
  (memory (export "memory") 1)
  (type $f (func))
  (table 2 2 funcref)
  (elem (i32.const 0) $g)
  (func $g (param i32))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (call_indirect (type $f) (i32.const 2))
    (i32.const 0)))
