;; attacks: a command: _start and no marker
;; expect: refused abi
;; error: no skep_abi_v1 export: this is no skep agent; build it with a skep SDK for ABI 1, as a reactor (-buildmode=c-shared in Go)
(module
  (memory (export "memory") 1)
  (func (export "_start")))
