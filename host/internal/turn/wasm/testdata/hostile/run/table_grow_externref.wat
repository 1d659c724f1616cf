;; attacks: a table of references to nothing, up to the cap
;; expect: ok
(module
  (memory (export "memory") 1)
  (table $t 0 externref)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again (br_if $again (i32.ne (table.grow $t (ref.null extern) (i32.const 5000)) (i32.const -1))))
    (i32.const 0)))
