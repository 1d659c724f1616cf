;; attacks: a loop within its fuel but not its time
;; expect: cpu limits.cpu
;; error: used up its computing time of 20ms
;; limits: fuel=1000000000000 cpu_ms=20
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again

      (br $again))
    (i32.const 0)))
