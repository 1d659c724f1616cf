;; attacks: two markers
;; expect: refused abi
;; error: several markers, for ABI 1 and 2, and this host speaks ABI 1: rebuild the module with one SDK, for ABI 1
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_abi_v2"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0)))
