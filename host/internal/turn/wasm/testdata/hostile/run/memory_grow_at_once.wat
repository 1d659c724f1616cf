;; attacks: all the memory that an address can name
;; expect: ok
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (if (i32.ne (memory.grow (i32.const 65535)) (i32.const -1)) (then unreachable))
    (if (i32.ne (memory.grow (i32.const -1)) (i32.const -1)) (then unreachable))
    (i32.const 0)))
