;; attacks: a guest that traps because it got no memory; the limit is told
;; expect: trap limits.memory
;; error: skep_turn: unreachable; it was refused more than 67108864 bytes of memory
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (if (i32.eq (memory.grow (i32.const 1024)) (i32.const -1)) (then unreachable))
    (i32.const 0)))
