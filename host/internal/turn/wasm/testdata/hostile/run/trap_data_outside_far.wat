;; attacks: a data segment at the end of all addresses
;; expect: trap
;; error: start: data[0]: out of bounds memory access
(module
  (memory (export "memory") 1)
  (data (i32.const -1) "ab")
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.const 0)))
