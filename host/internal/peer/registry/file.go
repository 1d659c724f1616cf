package registry

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"skep/host/internal/pathcheck"
	"skep/host/internal/store/atomicfile"
	"skep/spec/mail"
)

// fileVersion is the version of the file's format.
const fileVersion = 1

// maxFile bounds the file, in bytes: some twice what the most entries take.
const maxFile = 64 << 20

// fileContent is the format of the file.
type fileContent struct {
	Version   int              `json:"schema"`
	Endpoints map[string]Entry `json:"endpoints"`
}

// Check returns why the file of a registry cannot be read, nil where there is none.
func Check(path string) error {
	_, err := readFile(path)
	return err
}

// readFile reads the entries in their order; none if the file does not exist.
func readFile(path string) ([]Entry, error) {
	raw, err := pathcheck.ReadAny(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var c fileContent
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, fmt.Errorf("%s is damaged, restore or remove it: %w", path, err)
	}
	if c.Version != fileVersion {
		return nil, fmt.Errorf("%s has the form %d, this host knows %d", path, c.Version, fileVersion)
	}
	all := []Entry{}
	for name, e := range c.Endpoints {
		e, err := checkEntry(name, e)
		if errors.Is(err, errDamaged) {
			return nil, fmt.Errorf("%s is damaged, restore or remove it: %w", path, err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(a.Registered.Compare(b.Registered), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// errDamaged: an entry is none that was registered.
var errDamaged = errors.New("the entry")

// checkEntry checks an entry that was kept.
func checkEntry(name string, e Entry) (Entry, error) {
	if _, err := baseURL(e.BaseURL); err != nil || e.Name != name || mail.CheckSwarmName(name) != nil {
		return e, fmt.Errorf("%w %q", errDamaged, name)
	}
	// As at a registration: the value of any other variable would go to that address.
	if e.TokenRef != "" && e.TokenRef != tokenRef(name) {
		return e, fmt.Errorf("the entry %q refers to %s, and may refer to no variable but %s: remove it", name, e.TokenRef, tokenRef(name))
	}
	if string(e.Metadata) == "null" {
		e.Metadata = nil
	}
	return e, nil
}

// writeFile replaces the file; it is durable on return.
func writeFile(path string, entries []Entry) error {
	text, err := fileText(entries)
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, text)
}

// fileText is the text of the file with the lasting ones of entries.
func fileText(entries []Entry) ([]byte, error) {
	c := fileContent{Version: fileVersion, Endpoints: map[string]Entry{}}
	for _, e := range entries {
		if !e.Volatile && !e.Fixed {
			c.Endpoints[e.Name] = e
		}
	}
	raw, err := json.MarshalIndent(c, "", "  ")
	return append(raw, '\n'), err
}
