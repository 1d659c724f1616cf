package quarantine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// fileContent is the form of the file in which earlier versions kept the list.
type fileContent struct {
	Version int        `json:"version"`
	Agents  []Confined `json:"agents"`
}

// ReadFile reads the list that an earlier version has kept in a file, none without one.
func ReadFile(path string) ([]Confined, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var f fileContent
	if err == nil {
		err = json.Unmarshal(content, &f)
	}
	if err == nil && f.Version != version {
		err = fmt.Errorf("its version is %d and this skep knows %d", f.Version, version)
	}
	if err != nil {
		return nil, fmt.Errorf("quarantine %s: %w; remove it to release all agents", path, err)
	}
	return f.Agents, nil
}

// moveFile moves the list of a file into a store. One that is broken off leaves the file, and
// is repeated: nothing releases an agent in between. Agents of a tenant that is being erased are
// left out: its erasure goes on once the host runs.
func moveFile(ctx context.Context, path string, store Store) error {
	list, err := ReadFile(path)
	if err != nil {
		return err
	}
	for _, c := range list {
		if err := store.ConfineAgent(ctx, c); err != nil && !errors.Is(err, ErrErasing) {
			return fmt.Errorf("move quarantine %s into the store: %w", path, err)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("quarantine %s is in the store: %w", path, err)
	}
	return nil
}
