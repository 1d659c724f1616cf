;; attacks: an _initialize with a result
;; expect: refused abi
;; error: exports _initialize as () -> (i32), but it must be () -> ()
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0))
  (func (export "_initialize") (result i32) (i32.const 0)))
