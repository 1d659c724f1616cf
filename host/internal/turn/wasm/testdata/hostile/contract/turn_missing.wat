;; attacks: an agent that takes no turn
;; expect: refused abi
;; error: no function exported as "skep_turn"; an agent must have one
(module
  (memory (export "memory") 1)
  (func (export "skep_abi_v1")))
