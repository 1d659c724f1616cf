;; attacks: a table up to the cap, without a word in its own declaration
;; expect: ok
(module
  (memory (export "memory") 1)
  (table $t 1 funcref)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again (br_if $again (i32.ne (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1))))
    (if (i32.gt_u (table.size $t) (i32.const 100000)) (then unreachable))
    (i32.const 0)))
