;; attacks: a table from outside
;; expect: refused abi
;; error: imports skep_v1.table, which is no function; a module brings its own memory, tables and globals
(module
  (import "skep_v1" "table" (table 1 funcref))
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0)))
