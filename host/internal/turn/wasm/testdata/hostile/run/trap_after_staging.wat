;; attacks: a turn that has sent its mail and then traps; whoever staged it must forget it
;; expect: trap
;; error: skep_turn: unreachable
(module
  (import "skep_v1" "call" (func $call (param i32 i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 16) "{\22tool\22:\22task_complete\22,\22args\22:{\22finish_message\22:\22mine now\22}}         ")
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (drop (call $call (i32.const 10) (i32.const 16) (i32.const 74) (i32.const 1024) (i32.const 1024)))
    unreachable))
