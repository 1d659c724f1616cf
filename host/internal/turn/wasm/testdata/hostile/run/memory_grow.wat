;; attacks: memory up to the limit, 1 MiB at a time; a refused grow is no fault
;; expect: ok
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again (br_if $again (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
    (i32.const 0)))
