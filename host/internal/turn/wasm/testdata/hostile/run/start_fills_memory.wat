;; attacks: all memory filled in _initialize: too much for an image
;; expect: ok
(module
  (memory (export "memory") 1024)
  (func (export "_initialize") (memory.fill (i32.const 0) (i32.const 1) (i32.const 0x4000000)))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.const 0)))
