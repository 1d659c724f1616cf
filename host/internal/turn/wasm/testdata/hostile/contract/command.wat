;; attacks: a command: _start and no marker
;; expect: refused abi
;; error: no skep_abi_v1 export: it is built as a program; build it as a reactor (Go: -buildmode=c-shared), with a skep SDK for ABI 1
(module
  (memory (export "memory") 1)
  (func (export "_start")))
