;; attacks: a skep_describe that writes nothing
;; expect: refused describe
;; error: descriptor: not JSON: unexpected end of JSON input
;; descriptor: none
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0))
  (func (export "skep_describe") (result i32) (i32.const 0)))
