;; attacks: recursion in skep_describe
;; expect: refused describe
;; error: skep_describe: stack: went deeper than 8388608 bytes of stack; a descriptor in a custom section skep.descriptor needs no run
;; descriptor: none
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32) (i32.const 0))
  (func $d (export "skep_describe") (result i32) (i32.add (call $d) (i32.const 1))))
