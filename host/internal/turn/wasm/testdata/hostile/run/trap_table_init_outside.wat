;; attacks: elements behind the end of a segment
;; expect: trap
;; error: skep_turn: invalid table access
(module
  (memory (export "memory") 1)
  (table 4 4 funcref)
  (func $f)
  (elem $e func $f)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (table.init 0 $e (i32.const 0) (i32.const 1) (i32.const 1))
    (i32.const 0)))
