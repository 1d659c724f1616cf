;; attacks: an image as large as one may be, and a turn that then writes every byte
;; expect: ok
(module
  (memory (export "memory") 1024)
  (func (export "_initialize") (memory.fill (i32.const 0) (i32.const 1) (i32.const 0x1000000)))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (memory.fill (i32.const 0) (i32.const 2) (i32.const 0x4000000))
    (i32.const 0)))
