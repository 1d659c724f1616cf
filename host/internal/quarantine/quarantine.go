package quarantine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"skep/host/internal/store/atomicfile"
)

// Agent names an agent of a tenant's swarm.
type Agent struct {
	Tenant string `json:"tenant"`
	Swarm  string `json:"swarm"`
	Name   string `json:"agent"`
}

// Confined is an agent in quarantine.
type Confined struct {
	Agent
	// Module is the digest of what it ran on, empty where that is not known.
	Module string    `json:"module,omitempty"`
	Since  time.Time `json:"since"`
	Why    string    `json:"why"`
}

// Quarantine is the list of agents that must not run. It is safe for concurrent
// use.
type Quarantine struct {
	path string

	mu   sync.RWMutex
	list []Confined
}

// quarantineFile is the form of the file.
type quarantineFile struct {
	Version int        `json:"version"`
	Agents  []Confined `json:"agents"`
}

// OpenQuarantine reads the list at path. Without a file it is empty.
func OpenQuarantine(path string) (*Quarantine, error) {
	q := &Quarantine{path: path}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return q, nil
	}
	var f quarantineFile
	if err == nil {
		err = json.Unmarshal(content, &f)
	}
	if err == nil && f.Version != version {
		err = fmt.Errorf("its version is %d and this skep knows %d", f.Version, version)
	}
	if err != nil {
		return nil, fmt.Errorf("quarantine %s: %w; remove it to release all agents", path, err)
	}
	q.list = f.Agents
	return q, nil
}

// Reason returns why an agent must not run; ok is false for one that may.
func (q *Quarantine) Reason(a Agent) (reason string, ok bool) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	i := q.find(a)
	if i < 0 {
		return "", false
	}
	return q.list[i].Why, true
}

// Agents lists who is in quarantine, in the order they came.
func (q *Quarantine) Agents() []Confined {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return slices.Clone(q.list)
}

// Confine puts an agent that runs on a module into quarantine; it is durable on
// return.
func (q *Quarantine) Confine(a Agent, module, why string, now time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.find(a) >= 0 {
		return nil
	}
	return q.save(append(slices.Clone(q.list), Confined{a, module, now.UTC(), why}))
}

// Release takes an agent out; it is durable on return. ok is false for one that
// was not in it.
func (q *Quarantine) Release(a Agent) (ok bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := q.find(a)
	if i < 0 {
		return false, nil
	}
	return true, q.save(slices.Delete(slices.Clone(q.list), i, i+1))
}

func (q *Quarantine) find(a Agent) int {
	return slices.IndexFunc(q.list, func(c Confined) bool { return c.Agent == a })
}

// save writes a list and makes it the one in force. The caller holds mu.
func (q *Quarantine) save(list []Confined) error {
	content, err := json.MarshalIndent(quarantineFile{version, list}, "", "  ")
	if err == nil {
		err = atomicfile.Replace(q.path, append(content, '\n'))
	}
	if err != nil {
		return fmt.Errorf("quarantine %s: %w", q.path, err)
	}
	q.list = list
	return nil
}
