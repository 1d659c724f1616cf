//go:build linux && !amd64 && !arm64

package process

// auditArch is unknown for this processor; nothing is filtered.
const auditArch = 0

func deniedCallsArch() []uint32 { return nil }

func ignoredCallsArch() []uint32 { return nil }
