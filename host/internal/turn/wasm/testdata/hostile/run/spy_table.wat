;; attacks: what an earlier turn left in a table
;; expect: ok
(module
  (memory (export "memory") 1)
  (table 2 2 funcref)
  (func $f)
  (elem declare func $f)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (if (i32.eqz (ref.is_null (table.get 0 (i32.const 1)))) (then unreachable))
    (table.set 0 (i32.const 1) (ref.func $f))
    (i32.const 0)))
