package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"skep/abi"
	"skep/host/internal/definition"
	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm"
	"skep/host/internal/turn/wasm/binary"
)

// inspection is what can be known of a module without a swarm, and its JSON.
// Members that a refused module lacks are null.
type inspection struct {
	File       string          `json:"file"`
	SHA256     string          `json:"sha256"`
	Size       int             `json:"size"`
	Refused    *refusedView    `json:"refused"`
	Language   *languageView   `json:"language"`
	ABI        int             `json:"abi,omitempty"`
	Descriptor *abi.Descriptor `json:"descriptor"`
	Requests   []requestView   `json:"requests"`
	Imports    []string        `json:"imports"`
	Limits     []limitView     `json:"limits"`
	Memory     *memoryView     `json:"memory"`
	Start      *startView      `json:"start"`
	Metering   *meterView      `json:"metering"`
	Compile    *compileView    `json:"compile"`

	source  string
	refusal *turn.LoadError
}

// refusedView is where loading stopped, the key that decides, and why.
type refusedView struct {
	Step   turn.LoadStep `json:"step"`
	Key    string        `json:"key,omitempty"`
	Reason string        `json:"reason"`
}

// refusedBy is the refusal in an error, nil if the module is not at fault.
func refusedBy(err error) *refusedView {
	var refused *turn.LoadError
	var known *failure
	switch {
	case errors.Is(err, errInterrupted):
		return nil
	case errors.As(err, &refused):
		return &refusedView{Step: refused.Step, Key: refused.Key, Reason: refused.Err.Error()}
	case errors.As(err, &known) && known.code == exitNotFound:
		return &refusedView{Step: turn.StepRead, Reason: known.Error()}
	}
	return nil
}

// languageView is a guess and what it was made from.
type languageView struct {
	Probably string `json:"probably"`
	Version  string `json:"version,omitempty"`
	Mark     string `json:"mark"`
}

// requestView is a grant that the module requests.
type requestView struct {
	Allow    string `json:"allow"`
	To       string `json:"to"` // "call https://api.example"
	Reason   string `json:"reason"`
	Optional bool   `json:"optional"`
}

// limitView is how much of a cap the module needs. Limit is the default.
type limitView struct {
	Key   string `json:"key"`
	Used  int64  `json:"used"`
	Limit int64  `json:"limit"`
}

// share is the part of the limit that is used.
func (l limitView) share() float64 { return float64(l.Used) / float64(max(l.Limit, 1)) }

// memoryView is what the module declares, in bytes; Maximum is null without one.
type memoryView struct {
	Minimum int64  `json:"minimum"`
	Maximum *int64 `json:"maximum"`
}

// startView is a started instance, in bytes. Anew is why there is no image, Failed
// why it does not start.
type startView struct {
	Memory int64      `json:"memory,omitempty"`
	Image  int64      `json:"image,omitempty"`
	Reset  wasm.Reset `json:"reset,omitempty"`
	Anew   string     `json:"anew,omitempty"`
	Failed string     `json:"failed,omitempty"`
}

// meterView is what metering costs: bytes of code before and after, and the
// places where fuel is taken.
type meterView struct {
	Code    int `json:"code"`
	Metered int `json:"metered"`
	Charges int `json:"charges"`
}

// compileView is the time from bytes to a loaded module without the compile cache,
// and whether the cache has the module.
type compileView struct {
	Millis int64 `json:"ms"`
	Cached bool  `json:"cached"`
}

func newInspection(name, source string, wasmBytes []byte) *inspection {
	sum := sha256.Sum256(wasmBytes)
	return &inspection{File: name, SHA256: hex.EncodeToString(sum[:]), Size: len(wasmBytes), source: source}
}

// describe copies the module's descriptor.
func (i *inspection) describe(d *abi.Descriptor) {
	i.ABI, i.Descriptor, i.Requests = d.ABI, d, []requestView{}
	for _, r := range d.Requests {
		i.Requests = append(i.Requests, requestView{Allow: r.Allow, To: definition.May(r), Reason: r.Reason, Optional: r.Optional})
	}
}

// structure copies what the binary shows.
func (i *inspection) structure(m *binary.Module) {
	if l := m.Language(); l.Name != "" {
		i.Language = &languageView{Probably: l.Name, Version: l.Version, Mark: l.Mark}
	}
	i.Imports = importsOf(m)
	used, limits := m.Usage().Named(), binary.DefaultCaps().Named()
	for n, u := range used {
		i.Limits = append(i.Limits, limitView{Key: "limits.module." + u.Key, Used: u.Value, Limit: limits[n].Value})
	}
	const page = 64 << 10
	for _, mem := range m.Memories { // at most one
		i.Memory = &memoryView{Minimum: int64(mem.Min) * page}
		if mem.HasMax {
			maximum := int64(mem.Max) * page
			i.Memory.Maximum = &maximum
		}
	}
}

// importsOf lists what a module takes from the host.
func importsOf(m *binary.Module) []string {
	names := make([]string, len(m.Imports))
	for i, imp := range m.Imports {
		names[i] = imp.Module + "." + imp.Name
	}
	slices.Sort(names)
	return slices.Compact(names)
}
