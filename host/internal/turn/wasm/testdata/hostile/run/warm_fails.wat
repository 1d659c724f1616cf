;; attacks: skep_warm that fails
;; expect: failed
;; error: the agent returned an error without a message
(module
  (memory (export "memory") 1)
  (func (export "skep_warm") (result i32) (i32.const 1))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.const 0)))
