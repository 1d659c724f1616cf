;; attacks: the bits of NaNs, which could tell machines apart
;; expect: ok
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (if (i32.ne (i32.reinterpret_f32 (f32.neg (f32.const nan:0x200000))) (i32.const 0xffa00000)) (then unreachable))
    (if (i64.ne (i64.reinterpret_f64 (f64.copysign (f64.const nan:0x1) (f64.const -1))) (i64.const 0xfff0000000000001)) (then unreachable))
    (if (i32.eqz (f64.ne (f64.div (f64.const 0) (f64.const 0)) (f64.const 0))) (then unreachable))
    (if (i32.ne (i32.trunc_sat_f32_s (f32.const nan)) (i32.const 0)) (then unreachable))
    (if (i32.ne (i32.trunc_sat_f64_u (f64.const inf)) (i32.const -1)) (then unreachable))
    (i32.const 0)))
