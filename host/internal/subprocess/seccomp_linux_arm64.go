package subprocess

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// refusedHere are calls that only this processor has.
func refusedHere() []uint32 { return []uint32{unix.SYS_KEXEC_FILE_LOAD} }

// pretendedHere are older forms of calls, of which this processor has none.
func pretendedHere() []uint32 { return nil }
