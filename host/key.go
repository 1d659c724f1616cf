package host

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

// keyFile holds the operator's key of a host whose configuration has no keys.
const keyFile = "operator.key"

// operatorKey reads the key in the data directory, or makes one. Whoever can
// read the file could change the configuration beside it as well.
func operatorKey(dir string) (key, path string, made bool, err error) {
	path = filepath.Join(dir, keyFile)
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
