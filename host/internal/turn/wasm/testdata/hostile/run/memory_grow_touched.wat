;; attacks: memory up to the limit, with something on every page of it
;; expect: ok
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32) (local $at i32)
    (loop $again (br_if $again (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
    (local.set $at (i32.shl (memory.size) (i32.const 16)))
    (loop $again
      (local.set $at (i32.sub (local.get $at) (i32.const 4096)))
      (i32.store (local.get $at) (i32.const 1))
      (br_if $again (local.get $at)))
    (i32.const 0)))
