;; attacks: a global from outside
;; expect: refused abi
;; error: imports skep_v1.g, which is no function; a module brings its own memory, tables and globals
(module
  (import "skep_v1" "g" (global i32))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0)))
