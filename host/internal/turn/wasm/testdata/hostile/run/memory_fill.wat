;; attacks: 32 MiB filled by one instruction
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (memory (export "memory") 512)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $again
      (memory.fill (i32.const 0) (i32.const 1) (i32.const 0x2000000))
      (br $again))
    (i32.const 0)))
