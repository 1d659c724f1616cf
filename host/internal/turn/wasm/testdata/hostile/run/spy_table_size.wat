;; attacks: what an earlier turn left as the size of a table
;; expect: ok
(module
  (memory (export "memory") 1)
  (table 2 9 funcref)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (if (i32.ne (table.size 0) (i32.const 2)) (then unreachable))
    (drop (table.grow 0 (ref.null func) (i32.const 1)))
    (i32.const 0)))
