;; attacks: vectors whose results depend on the machine
;; expect: refused admit
;; error: wasm: opcode 0xfd 256 (of a later version) is not admitted (at byte 111)
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param i32) (result i32)
    (i32x4.extract_lane 0 (i8x16.relaxed_swizzle (v128.const i64x2 0 0) (v128.const i64x2 0 0)))))
