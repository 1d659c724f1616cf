package process

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// deniedCallsArch are denied calls that only this processor has.
func deniedCallsArch() []uint32 { return []uint32{unix.SYS_KEXEC_FILE_LOAD} }

// ignoredCallsArch are older forms of ignored calls; this processor has none.
func ignoredCallsArch() []uint32 { return nil }
