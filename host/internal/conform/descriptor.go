package conform

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"skep/abi"
	"skep/host/internal/schema"
)

// descriptor looks at what the module says of itself. That it has the members
// that are mandatory was found out when it was loaded.
func descriptor(ctx context.Context, s *subject) finding {
	d := s.module.Descriptor()
	f := finding{detail: fmt.Sprintf("%s %s; agents: %d, actions: %d, requests: %d",
		d.Name, d.Version, len(d.Agents), len(d.Actions), len(d.Requests))}
	s.sameTwice(ctx, &f)
	names := []string{}
	for _, a := range d.Agents {
		checkName(&f, "agent", a.Name)
		names = append(names, "agent "+a.Name)
		checkSchema(&f, "params of agent "+a.Name, a.Params)
		checkCapabilities(&f, a)
	}
	for _, a := range d.Actions {
		names = append(names, "action "+a.Name)
		checkAction(&f, a)
	}
	for i, n := range names {
		if slices.Contains(names[:i], n) {
			f.problemf("%s is there twice", n)
		}
	}
	for _, r := range d.Requests {
		checkRequest(&f, r)
	}
	return f
}

// sameTwice compares the section with what skep_describe writes.
func (s *subject) sameTwice(ctx context.Context, f *finding) {
	written := section(s.admitted)
	if _, ok := s.admitted.Export(abi.ExportDescribe); !ok || written == nil {
		return
	}
	told, exit := s.module.Describe(ctx)
	switch {
	case exit != nil:
		f.problemf("%s ends as %v, though the section %s is there", abi.ExportDescribe, exit, abi.DescriptorSection)
	case !equalJSON(written, told):
		f.problemf("the section %s is not what %s writes: %s and %s",
			abi.DescriptorSection, abi.ExportDescribe, clip(string(written)), clip(string(told)))
	}
}

// checkName wants a name that can stand in an address.
func checkName(f *finding, what, name string) {
	bad := func(r rune) bool { return r == '@' || r == ':' || unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if name == "" || len(name) > 128 || strings.ContainsFunc(name, bad) {
		f.problemf("the %s name %q cannot be an address: it needs 1 to 128 characters, without space, @ and :", what, name)
	}
}

func checkSchema(f *finding, what string, raw json.RawMessage) {
	if raw == nil {
		return
	}
	if err := schema.Stranger(raw); err != nil {
		f.problemf("the %s are no JSON Schema: %v", what, err)
	}
}

func checkCapabilities(f *finding, a abi.AgentDescriptor) {
	if a.Capacity < 0 {
		f.problemf("the capacity of agent %s is %d", a.Name, a.Capacity)
	}
	for i, c := range a.Capabilities {
		what := fmt.Sprintf("capability %q of agent %s", c.ID, a.Name)
		if c.ID == "" {
			f.problemf("capability %d of agent %s has no id", i+1, a.Name)
		}
		checkSchema(f, "inputs of "+what, c.InputSchema)
		checkSchema(f, "outputs of "+what, c.OutputSchema)
	}
}

func checkAction(f *finding, a abi.ActionDescriptor) {
	if a.Parameters == nil {
		f.problemf("action %s has no parameters; a schema of an object is needed, {\"type\":\"object\"} at least", a.Name)
	}
	checkSchema(f, "parameters of action "+a.Name, a.Parameters)
	if a.Description == "" {
		f.problemf("action %s has no description; models choose by it", a.Name)
	}
	if d, err := time.ParseDuration(a.Timeout); a.Timeout != "" && (err != nil || d <= 0) {
		f.problemf("the timeout of action %s is %q, not a time such as 5s", a.Name, a.Timeout)
	}
}
