;; attacks: sixteen loops, each around the next
;; expect: fuel limits.fuel
;; error: used up its fuel of 5000000 units
;; limits: fuel=5000000 start=5000000
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1"))
  (func (export "skep_turn") (param $len i32) (result i32)
    (loop $l0
      (loop $l1
        (loop $l2
          (loop $l3
            (loop $l4
              (loop $l5
                (loop $l6
                  (loop $l7
                    (loop $l8
                      (loop $l9
                        (loop $l10
                          (loop $l11
                            (loop $l12
                              (loop $l13
                                (loop $l14
                                  (loop $l15
                                    (br $l15))
    (br $l14))
    (br $l13))
    (br $l12))
    (br $l11))
    (br $l10))
    (br $l9))
    (br $l8))
    (br $l7))
    (br $l6))
    (br $l5))
    (br $l4))
    (br $l3))
    (br $l2))
    (br $l1))
    (br $l0))
    (i32.const 0)))
