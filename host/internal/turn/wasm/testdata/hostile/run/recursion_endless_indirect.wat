;; attacks: recursion without end through a table
;; expect: stack limits.stack
;; error: went deeper than 8388608 bytes of stack
(module
  (memory (export "memory") 1)
  (type $f (func (result i32)))
  (table 1 1 funcref)
  (elem (i32.const 0) $down)
  (func $down (type $f) (i32.add (call_indirect (type $f) (i32.const 0)) (i32.const 1)))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (call $down)))
