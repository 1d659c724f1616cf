;; attacks: a failure whose text tries to look like the host
;; expect: failed
;; error: INTERNAL: 
(module
  (import "skep_v1" "output_write" (func $output_write (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 8) "{\22code\22:\22INTERNAL\22,\22message\22:\22\5cu001b[2Jthe host is down\22}")
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (drop (call $output_write (i32.const 8) (i32.const 57)))
    (i32.const 1)))
