;; attacks: what an earlier turn left in a global that is a reference
;; expect: ok
(module
  (memory (export "memory") 1)
  (global $a (mut funcref) (ref.null func))
  (func $f)
  (elem declare func $f)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (if (i32.eqz (ref.is_null (global.get $a))) (then unreachable))
    (global.set $a (ref.func $f))
    (i32.const 0)))
