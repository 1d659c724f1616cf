;; attacks: an element segment that does not fit
;; expect: ok
(module
  (memory (export "memory") 1)
  (table 1 1 funcref)
  (func $f)
  (elem (i32.const 1) $f)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.const 0)))
