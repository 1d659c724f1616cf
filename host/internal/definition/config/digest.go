package config

import (
	"crypto/sha256"
	"encoding/hex"
)

// Digest is the sha256 of the file's text in hexadecimal digits. What env:: and
// file:: give is not part of it. It is empty for a Config that was not read.
func (c *Config) Digest() string {
	if c.src == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(c.src.text))
	return hex.EncodeToString(sum[:])
}
