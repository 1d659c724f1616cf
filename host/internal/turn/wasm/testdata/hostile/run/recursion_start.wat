;; attacks: recursion without end in the start function
;; expect: stack limits.stack
;; error: went deeper than 8388608 bytes of stack
(module
  (memory (export "memory") 1)
  (func $down (result i32) (i32.add (call $down) (i32.const 1)))
  (func $start (drop (call $down)))
  (start $start)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (i32.const 0)))
