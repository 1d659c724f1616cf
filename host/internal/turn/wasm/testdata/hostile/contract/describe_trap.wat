;; attacks: a trap in skep_describe
;; expect: refused describe
;; error: skep_describe: trap: skep_describe: unreachable
;; descriptor: none
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0))
  (func (export "skep_describe") (result i32) unreachable))
