;; attacks: a marker that is no function
;; expect: refused abi
;; error: exports "skep_abi_v1", but not as a function () -> ()
(module
  (memory (export "memory") 1)
  (global (export "skep_abi_v1") i32 (i32.const 1))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0)))
