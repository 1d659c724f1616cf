;; attacks: a memory from outside
;; expect: refused abi
;; error: imports env.memory, which is no function; a module brings its own memory, tables and globals
(module
  (import "env" "memory" (memory 1))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0)))
