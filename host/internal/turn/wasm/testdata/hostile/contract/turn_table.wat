;; attacks: a turn that is a table
;; expect: refused abi
;; error: exports "skep_turn", but not as a function (i32) -> (i32)
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (table (export "skep_turn") 1 funcref))
