package keyring

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"
)

// Versions of the file. The first was one JSON object, replaced for every key.
const (
	firstVersion = 1
	fileVersion  = 2
)

// header is the first line. Check is the empty text, wrapped: it shows whether a
// wrapping key is the right one, and its absence that the keys are plain. Count
// is how many keys were there when the file was replaced as a whole: fewer are
// damage, while the last line behind them may have been torn by a crash.
type header struct {
	Version int    `json:"version"`
	Check   []byte `json:"check,omitempty"`
	Count   int    `json:"count"`
}

// batch is every other line: keys that became durable together.
type batch struct {
	Keys []fileKey `json:"keys"`
}

type fileKey struct {
	ID        ID        `json:"id"`
	Tenant    string    `json:"tenant"`
	Created   time.Time `json:"created"`
	Retired   time.Time `json:"retired,omitzero"`
	Destroyed time.Time `json:"destroyed,omitzero"`
	Key       []byte    `json:"key,omitempty"`
}

// checkName is what the check is wrapped for.
const checkName = "skep keyring"

// name binds a wrapped key to its entry.
func (k fileKey) name() string { return fmt.Sprintf("%s\x00%d\x00%s", checkName, k.ID, k.Tenant) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendLine appends a line: the checksum of what follows it, a space, JSON.
func appendLine(dst []byte, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(dst, "%08x %s\n", crc32.Checksum(b, castagnoli), b), nil
}

// sumSize is the length of a checksum and the space behind it.
const sumSize = 9

// readLine decodes a line, unless it is not whole.
func readLine(line []byte, v any) bool {
	if len(line) <= sumSize || line[len(line)-1] != '\n' {
		return false
	}
	body := line[sumSize : len(line)-1]
	sum, err := strconv.ParseUint(string(line[:sumSize-1]), 16, 32)
	return err == nil && uint32(sum) == crc32.Checksum(body, castagnoli) && json.Unmarshal(body, v) == nil
}

// content is what a file holds.
type content struct {
	header
	keys []fileKey
	// whole is how many bytes of the file are. What is behind them is the end of
	// a write that a crash cut short.
	whole int64
}

var errDamaged = errors.New("it is damaged, restore it from a copy")

// parse reads a file of any version.
func parse(raw []byte) (content, error) {
	if bytes.HasPrefix(raw, []byte("{")) {
		return parseFirst(raw)
	}
	var c content
	torn := false
	for line := range bytes.Lines(raw) {
		var b batch
		var v any = &b
		if c.Version == 0 {
			v = &c.header
		}
		ok := readLine(line, v)
		switch {
		case ok && torn:
			return content{}, fmt.Errorf("%w: line at byte %d does not match its checksum", errDamaged, c.whole)
		case ok && c.Version > fileVersion:
			return content{}, tooNew(c.Version)
		case ok && c.Version < fileVersion, !ok && c.Version == 0:
			return content{}, fmt.Errorf("%w: it has no header", errDamaged)
		case ok:
			c.keys = append(c.keys, b.Keys...)
			c.whole += int64(len(line))
		}
		torn = torn || !ok
	}
	switch {
	case c.Version == 0:
		return content{}, fmt.Errorf("%w: it is empty", errDamaged)
	case len(c.keys) < c.Count:
		return content{}, fmt.Errorf("%w: of %d keys it holds %d", errDamaged, c.Count, len(c.keys))
	}
	return c, nil
}

func tooNew(version int) error {
	return fmt.Errorf("its version is %d and this skep knows %d: use the newer skep that wrote it", version, fileVersion)
}

// parseFirst reads a file of the first version.
func parseFirst(raw []byte) (content, error) {
	var f struct {
		Version int       `json:"version"`
		Check   []byte    `json:"check"`
		Keys    []fileKey `json:"keys"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return content{}, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if f.Version != firstVersion {
		return content{}, tooNew(f.Version)
	}
	return content{header{f.Version, f.Check, len(f.Keys)}, f.Keys, int64(len(raw))}, nil
}
