;; attacks: a loop in skep_describe
;; expect: refused describe
;; error: skep_describe: fuel: used up its fuel of the start of 500000000 units; a descriptor in a custom section skep.descriptor needs no run
;; descriptor: none
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0))
  (func (export "skep_describe") (result i32) (loop $again (br $again)) (i32.const 0)))
