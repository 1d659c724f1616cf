;; attacks: a segment that an earlier turn dropped
;; expect: ok
(module
  (memory (export "memory") 1)
  (data $d "abc")
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (memory.init $d (i32.const 0) (i32.const 0) (i32.const 3))
    (data.drop $d)
    (i32.const 0)))
