package server

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// operatorKeyFile is the file of the operator's key in a data directory.
const operatorKeyFile = "operator.key"

// operatorKey reads the key in the data directory, or makes one. It is stored in
// the clear: a user who can read the file could also change the configuration
// beside it.
func operatorKey(dir string) (key, path string, made bool, err error) {
	path = filepath.Join(dir, operatorKeyFile)
	raw, err := os.ReadFile(path)
	if err == nil {
		key = strings.TrimSpace(string(raw))
		if len(key) < 16 {
			return "", path, false, fmt.Errorf("%s holds no key; delete it to get a new one", path)
		}
		return key, path, false, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", path, false, fmt.Errorf("read the operator's key: %w", err)
	}
	b := make([]byte, 32)
	rand.Read(b)
	key = "skep_op_" + base64.RawURLEncoding.EncodeToString(b)
	if err := os.WriteFile(path, []byte(key+"\n"), 0o600); err != nil {
		return "", path, false, fmt.Errorf("write the operator's key: %w", err)
	}
	return key, path, true, nil
}
