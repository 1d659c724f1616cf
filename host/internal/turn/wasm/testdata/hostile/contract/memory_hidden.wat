;; attacks: a memory that is not exported
;; expect: refused abi
;; error: no memory exported as "memory"; the host reads and writes it
(module
  (memory 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0)))
