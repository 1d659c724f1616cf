package abi

import (
	"errors"
	"fmt"
	"strconv"
)

// ErrVersion is wrapped by the error of a module that speaks another ABI version
// than [Version].
var ErrVersion = errors.New("ABI version")

// Mismatch is the error of something of a module, for instance its descriptor,
// that speaks another version than this host. It names both versions and what
// to do. The version is as the module writes it.
func Mismatch(what, version string) error {
	advice := fmt.Sprintf("rebuild the module with an SDK for ABI %d", Version)
	if n, err := strconv.Atoi(version); err == nil && n > Version {
		advice = "upgrade skep, or " + advice
	}
	return fmt.Errorf("%s speaks %w %s, this host version %d: %s", what, ErrVersion, version, Version, advice)
}
