;; attacks: a memory that starts above the limit
;; expect: memory limits.memory
;; error: the module starts with 131072000 bytes of memory, at most 67108864
(module
  (memory (export "memory") 2000)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.const 0)))
