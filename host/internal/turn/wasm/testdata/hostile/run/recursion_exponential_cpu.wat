;; attacks: the same within its fuel but not its time
;; expect: cpu limits.cpu
;; error: used up its computing time of 20ms
;; limits: fuel=1000000000000 cpu_ms=20
(module
  (memory (export "memory") 1)
  (func $fib (param $n i32) (result i32)
    (if (result i32) (i32.lt_s (local.get $n) (i32.const 2))
      (then (local.get $n))
      (else (i32.add (call $fib (i32.sub (local.get $n) (i32.const 1)))
                     (call $fib (i32.sub (local.get $n) (i32.const 2)))))))
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (call $fib (i32.const 60))))
