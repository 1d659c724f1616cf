package signature_test

import (
	"path/filepath"
	"testing"

	"skep/host/internal/peer/signature"
	"skep/host/internal/store/durabletest"
)

// A key that the host signs with survives a power cut.
func TestKeyFileLasts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), signature.KeyFileName)
	var key signature.Key
	durabletest.Trace(t, func() (err error) {
		key, _, err = signature.OpenKeyFile(path)
		return err
	}).Want(t, path)
	again, made, err := signature.OpenKeyFile(path)
	if err != nil || made || string(again.PEM()) != string(key.PEM()) {
		t.Errorf("another key, %v, %v", made, err)
	}
}
